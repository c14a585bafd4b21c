// SPDX-License-Identifier: Apache-2.0
//
// EventLoop: the loop thread of a node. Other threads (gRPC's, the store's) post what happened; the loop runs
// it in order (sanitized builds: in any that keeps the order within each source, host/posix/ready_order.h),
// and its owner's work after each batch and whenever that asked to be called.
//
// Thread rule: post() any thread; all else the loop's own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "base/rng.h"
#include "base/time.h"
#include "host/api/clock.h"
#include "host/posix/mailbox.h"
#include "host/posix/ready_order.h"

namespace gossamer::node {

class EventLoop {
 public:
  using Action = std::function<void()>;
  // Does what is due; says when it wants to be called again at the latest.
  using Work = std::function<std::optional<Instant>()>;
  static constexpr Duration kLookEvery{50'000'000};  // how late a signal may be noticed

  explicit EventLoop(const host::Clock& clock)
      : clock_(clock), rng_(static_cast<std::uint64_t>(clock.now().ns), Purpose::kFault) {}

  void post(const host::EventSource& source, Action action) {
    mailbox_.push({.source = source, .action = std::move(action)});
  }
  // Until `over`, which is asked after each round.
  void run(const Work& work, const std::function<bool()>& over);
  [[nodiscard]] Instant now() const { return clock_.now(); }

 private:
  struct Posted {
    host::EventSource source;
    Action action;
  };

  const host::Clock& clock_;
  Rng rng_;  // of the order, where it is drawn
  host::Mailbox<Posted> mailbox_;
};

}  // namespace gossamer::node
