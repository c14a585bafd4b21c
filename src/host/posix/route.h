// SPDX-License-Identifier: Apache-2.0
//
// The address of this machine that others see, and the machine's identity where addresses do not tell it.
// Thread rule: any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "host/api/endpoint.h"

namespace gossamer::host {

struct Route {
  std::string own;  // the address from which this machine reaches `to`
  Endpoint to;      // the endpoint with an address in place of a name: asked for that, nothing is looked up
};
// Sends nothing, but looks names up, which blocks. kFailed: the name is not found, or there is no route.
[[nodiscard]] Result<Route> route_to(const Endpoint& to);

// Whether this address, as text, is one of this machine's now.
[[nodiscard]] bool has_address(const std::string& address);

// 16 hexadecimal digits, the same for all processes that share loopback addresses: the processes of one
// network namespace, until the machine is booted.
[[nodiscard]] std::string network_stack();

}  // namespace gossamer::host
