// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/socket_options.h"

#include <grpc/support/sync.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

#include "host/grpc/descriptors.h"

// gRPC's library exports its socket mutator; the header that declares it is not installed with it.
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
void grpc_socket_mutator_init(grpc_socket_mutator* mutator, const grpc_socket_mutator_vtable* vtable);

namespace gossamer::host {
namespace {

struct LaneMutator {
  grpc_socket_mutator base;  // first: gRPC knows only this
  Lane lane;
};

Lane lane_of(grpc_socket_mutator* mutator) { return reinterpret_cast<LaneMutator*>(mutator)->lane; }

// BBR on control would pace short bursts; cubic on bulk fills the bottleneck's queue, in which control then
// waits. A process that may not choose keeps the system's choice.
bool set_options(int fd, Lane lane) {
  const char* const congestion = lane == Lane::kControl ? "cubic" : "bbr";
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                   static_cast<socklen_t>(std::strlen(congestion)));
  return true;
}

const grpc_socket_mutator_vtable kVtable{
    [](int fd, grpc_socket_mutator* mutator) { return set_options(fd, lane_of(mutator)); },
    [](grpc_socket_mutator* a, grpc_socket_mutator* b) {
      return static_cast<int>(lane_of(a)) - static_cast<int>(lane_of(b));
    },
    [](grpc_socket_mutator* mutator) { delete reinterpret_cast<LaneMutator*>(mutator); },
    [](const grpc_mutate_socket_info* info, grpc_socket_mutator* mutator) {
      // gRPC owns the descriptor; it sees that the connection has ended, and closes it.
      const bool accepted = info->usage == GRPC_FD_SERVER_CONNECTION_USAGE;
      if (accepted && is_among_last(info->fd)) (void)::shutdown(info->fd, SHUT_RDWR);
      return set_options(info->fd, lane_of(mutator));
    }};

class LaneOption final : public grpc::ServerBuilderOption {
 public:
  explicit LaneOption(Lane lane) : lane_(lane) {}
  void UpdateArguments(grpc::ChannelArguments* arguments) override { set_socket_options(*arguments, lane_); }
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*) override {}

 private:
  Lane lane_;
};

}  // namespace

void set_socket_options(grpc::ChannelArguments& arguments, Lane lane) {
  auto* mutator = new LaneMutator{.base = {}, .lane = lane};  // gRPC's reference count owns it
  grpc_socket_mutator_init(&mutator->base, &kVtable);
  arguments.SetSocketMutator(&mutator->base);
}

std::unique_ptr<grpc::ServerBuilderOption> socket_options(Lane lane) {
  return std::make_unique<LaneOption>(lane);
}

}  // namespace gossamer::host
