// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/socket_options.h"

#include <grpc/support/sync.h>

#include "host/posix/door/listening.h"

// gRPC's library exports its socket mutator; the header that declares it is not installed with it. The names
// are its. NOLINTBEGIN(readability-identifier-naming)
using grpc_fd_usage = enum {
  GRPC_FD_CLIENT_CONNECTION_USAGE,
  GRPC_FD_SERVER_LISTENER_USAGE,
  GRPC_FD_SERVER_CONNECTION_USAGE
};
struct grpc_mutate_socket_info {
  int fd;
  grpc_fd_usage usage;
};
struct grpc_socket_mutator;
struct grpc_socket_mutator_vtable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info, grpc_socket_mutator* mutator);
};
struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount refcount;
};
// NOLINTEND(readability-identifier-naming)
void grpc_socket_mutator_init(grpc_socket_mutator* mutator, const grpc_socket_mutator_vtable* vtable);

namespace gossamer::host {
namespace {

struct LaneMutator {
  grpc_socket_mutator base;  // first: gRPC knows only this
  Lane lane;
};

Lane lane_of(grpc_socket_mutator* mutator) { return reinterpret_cast<LaneMutator*>(mutator)->lane; }

bool set_options(int fd, Lane lane) {
  set_lane_options(fd, lane);
  return true;
}

const grpc_socket_mutator_vtable kVtable{
    [](int fd, grpc_socket_mutator* mutator) { return set_options(fd, lane_of(mutator)); },
    [](grpc_socket_mutator* a, grpc_socket_mutator* b) {
      return static_cast<int>(lane_of(a)) - static_cast<int>(lane_of(b));
    },
    [](grpc_socket_mutator* mutator) { delete reinterpret_cast<LaneMutator*>(mutator); },
    [](const grpc_mutate_socket_info* info, grpc_socket_mutator* mutator) {
      return set_options(info->fd, lane_of(mutator));
    }};

}  // namespace

void set_socket_options(grpc::ChannelArguments& arguments, Lane lane) {
  auto* mutator = new LaneMutator{.base = {}, .lane = lane};  // gRPC's reference count owns it
  grpc_socket_mutator_init(&mutator->base, &kVtable);
  arguments.SetSocketMutator(&mutator->base);
}

}  // namespace gossamer::host
