// SPDX-License-Identifier: Apache-2.0
//
// Socket options of a lane, set before a socket connects or listens. Thread rule: any thread.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>

#include "host/api/network.h"

namespace gossamer::host {

void set_socket_options(grpc::ChannelArguments& arguments, Lane lane);
[[nodiscard]] std::unique_ptr<grpc::ServerBuilderOption> socket_options(Lane lane);

}  // namespace gossamer::host
