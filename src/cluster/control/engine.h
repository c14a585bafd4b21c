// SPDX-License-Identifier: Apache-2.0
//
// Engine: what a member computes, as its driver knows it. Told on the loop thread what happens, in the order
// in which it happens; acts through the MemberProcess that it was made with, whose member() is null between
// two lives. The rules that it keeps: docs/protocols/membership.md, "Changing the view".
//
// Thread rule: the loop thread. What takes long is Work, which the driver does on a thread of its own, one
// after the other; in a simulation it takes virtual time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/member_process.h"

namespace gossamer::cluster {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  virtual void on(const ProcessEvent& event, Instant now) = 0;
  virtual void tick(Instant now) = 0;
  [[nodiscard]] virtual std::optional<Instant> next_wakeup() const = 0;
  // The machine is wanted back: give everything away in order, then leave.
  virtual void drain(const std::string& reason, Instant now) = 0;
  // Why it could not go on; it has left the run then, or is about to.
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  // After every other call: what it wants done, if it does not wait for what it wanted before. Done, or
  // thrown away undone when the engine's driver ends.
  using Work = std::function<void()>;
  [[nodiscard]] virtual Work take_work() { return {}; }
  // What was taken is done.
  virtual void worked(Instant) {}
  // What people should know since the last call, for the log of its node.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() { return {}; }
  // For the metrics of its node.
  [[nodiscard]] virtual std::vector<CounterSample> counters() const = 0;
};

}  // namespace gossamer::cluster
