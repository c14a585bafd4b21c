// SPDX-License-Identifier: Apache-2.0
//
// EventLoop: the loop thread of a node. Other threads (gRPC's, the store's) post what happened; the loop runs
// it in order, and its owner's work after each batch and whenever that asked to be called.
//
// Thread rule: post() any thread; all else the loop's own.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/time.h"
#include "host/api/clock.h"
#include "host/posix/mailbox.h"

namespace gossamer::node {

class EventLoop {
 public:
  using Action = std::function<void()>;
  // Does what is due; says when it wants to be called again at the latest.
  using Work = std::function<std::optional<Instant>()>;
  static constexpr Duration kLookEvery{50'000'000};  // how late a signal may be noticed

  explicit EventLoop(const host::Clock& clock) : clock_(clock) {}

  void post(Action action) { mailbox_.push(std::move(action)); }
  // Until `over`, which is asked after each round.
  void run(const Work& work, const std::function<bool()>& over);
  [[nodiscard]] Instant now() const { return clock_.now(); }

 private:
  const host::Clock& clock_;
  host::Mailbox<Action> mailbox_;
};

}  // namespace gossamer::node
