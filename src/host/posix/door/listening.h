// SPDX-License-Identifier: Apache-2.0
//
// Sockets that listen at an endpoint. Thread rule: any thread.
#pragma once

#include <vector>

#include "base/result.h"
#include "host/api/endpoint.h"
#include "host/api/network.h"
#include "host/system/descriptor.h"

namespace gossamer::host {

struct Listening {
  std::vector<Descriptor> sockets;  // at least one; they do not block
  Endpoint at;                      // with the true port
};

// Listens at each address of `at`, all at one port; port 0 takes a free one. "0.0.0.0" and "::" are all
// addresses of this machine. Accepted sockets have the lane's options. The error says why it cannot: taken,
// not an address of this machine, not allowed.
[[nodiscard]] Result<Listening> listen_at(const Endpoint& at, Lane lane);

// Sets the congestion control of a lane, where this process may choose it. Requires a socket that has not
// connected. Control has cubic, as BBR would pace its short bursts. Bulk has BBR, as cubic would fill the
// queue of the bottleneck, in which control then waits.
void set_lane_options(int socket, Lane lane);

}  // namespace gossamer::host
