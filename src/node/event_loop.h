// SPDX-License-Identifier: Apache-2.0
//
// EventLoop is the loop thread of a node. Other threads (gRPC's, the store's) post what happened, and the
// loop runs it in order. Its owner's work runs after each batch, and whenever the work asked to be called. In
// sanitized builds the order is any that keeps the order within each source (host/posix/ready_order.h).
//
// Thread rule: any thread may call post(); all else belongs to the loop's thread.
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
  // Does what is due, and says when it is to be called again at the latest.
  using Work = std::function<std::optional<Instant>()>;
  static constexpr Duration kLookEvery{50'000'000};  // how late a signal may be noticed

  explicit EventLoop(const host::Clock& clock)
      : clock_(clock), rng_(static_cast<std::uint64_t>(clock.now().ns), Purpose::kFault) {}

  void post(const host::EventSource& source, Action action) {
    mailbox_.push({.source = source, .action = std::move(action)});
  }
  // Runs until `over`, which is asked after each round.
  void run(const Work& work, const std::function<bool()>& over);
  [[nodiscard]] Instant now() const { return clock_.now(); }

 private:
  struct Posted {
    host::EventSource source;
    Action action;
  };

  const host::Clock& clock_;
  Rng rng_;  // draws the order, where it is drawn
  host::Mailbox<Posted> mailbox_;
};

}  // namespace gossamer::node
