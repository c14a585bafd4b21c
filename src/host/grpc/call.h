// SPDX-License-Identifier: Apache-2.0
//
// The gRPC objects of a client stream. Thread rule: as stream.h.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <utility>

#include "host/grpc/stream.h"

namespace gossamer::host {

struct GrpcClientStream::Call {
  explicit Call(std::shared_ptr<grpc::ChannelInterface> channel) : stub(std::move(channel)) {}
  grpc::GenericStub stub;
  grpc::ClientContext context;
};

}  // namespace gossamer::host
