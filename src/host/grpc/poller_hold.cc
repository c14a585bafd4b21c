// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/poller_hold.h"

#include <grpc/support/cpu.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/version_info.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace gossamer::host {
namespace {

// The version for which the number of pollers is known. Other versions poll on threads that do other things
// too.
constexpr bool kKnownVersion = GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51;
constexpr int kProcessorsPerPoller = 4;

}  // namespace

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                      : static_cast<int>(gpr_cpu_num_cores());
}

int useful_pollers(int processors) { return std::max(1, processors / kProcessorsPerPoller); }

int grpc_pollers() {
  return kKnownVersion ? std::clamp(static_cast<int>(gpr_cpu_num_cores()) / 2, 2, 16) : 0;
}

// gRPC calls back on its pollers alone. So each cancelled call to nowhere, which is over at once, brings one
// poller into stay().
struct PollerHold::Held {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    grpc::ByteBuffer response;
  };

  void call(int pollers);
  void stay();
  void let_go();

  grpc::GenericStub stub{grpc::CreateChannel("unix:/nowhere", grpc::InsecureChannelCredentials())};
  // gRPC orders its callbacks by locks of its own, which race detectors do not see; they see this one.
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::deque<Call> calls;
  int here = 0;  // pollers that wait in stay()
  bool over = false;
};

void PollerHold::Held::call(int pollers) {
  const grpc::Slice nothing;
  std::unique_lock lock(mutex);
  for (int i = 0; i < pollers; ++i) {
    Call& call = calls.emplace_back();
    call.request = grpc::ByteBuffer(&nothing, 1);
    call.context.TryCancel();
    stub.UnaryCall(&call.context, "/gossamer.Poller/Hold", grpc::StubOptions(), &call.request, &call.response,
                   [this](const grpc::Status&) { stay(); });
  }
  changed.wait(lock, [&] { return here == pollers; });
}

void PollerHold::Held::stay() {
  std::unique_lock lock(mutex);
  ++here;
  changed.notify_all();
  changed.wait(lock, [this] { return over; });
  --here;
  changed.notify_all();
}

void PollerHold::Held::let_go() {
  std::unique_lock lock(mutex);
  over = true;
  changed.notify_all();
  changed.wait(lock, [this] { return here == 0; });
}

PollerHold::PollerHold() {
  const int surplus = grpc_pollers() - useful_pollers(usable_processors());
  if (surplus <= 0) return;
  held_ = std::make_unique<Held>();
  held_->call(surplus);
}

PollerHold::~PollerHold() {
  if (held_ != nullptr) held_->let_go();
}

std::shared_ptr<PollerHold> PollerHold::get() {
  static std::mutex mutex;
  static std::weak_ptr<PollerHold> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<PollerHold> hold = shared.lock();
  if (hold == nullptr) shared = hold = std::make_shared<PollerHold>();
  return hold;
}

}  // namespace gossamer::host
