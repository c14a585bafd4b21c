// SPDX-License-Identifier: Apache-2.0
//
// Socket options of a lane, set before a socket of gRPC's connects. Thread rule: any thread.
#pragma once

#include <grpcpp/support/channel_arguments.h>

#include "host/api/network.h"

namespace gossamer::host {

void set_socket_options(grpc::ChannelArguments& arguments, Lane lane);

}  // namespace gossamer::host
