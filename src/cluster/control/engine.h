// SPDX-License-Identifier: Apache-2.0
//
// Engine: what a member computes, as its driver knows it. The driver tells it on the loop thread what
// happens, in the order of events. The engine acts through the MemberProcess that it was made with, whose
// member() is null between two lives. It keeps the rules of docs/protocols/membership.md, "Changing the
// view".
//
// Thread rule: the loop thread. Long computations are Work, which the driver does on threads of its own.
// There are two queues, each with one thread: the main one for what takes long, and one beside it for what
// others wait for meanwhile, such as a sum. In a simulation Work takes virtual time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/member_process.h"

namespace gossamer::cluster {

// What an engine lacks to end the exchange that it is in.
struct Awaited {
  std::uint64_t exchange = 0;   // which one; another number for each that follows
  std::uint64_t messages = 0;   // that have not come
  std::set<NodeId> nodes = {};  // those that are to send them, and may
  bool operator==(const Awaited&) const = default;
};

// A long computation. It may say how long it takes in a simulation, which draws that otherwise. It is called
// once, on a thread of the driver.
class Work {
 public:
  // None.
  Work() = default;
  template <class Run>
    requires(!std::same_as<std::remove_cvref_t<Run>, Work> && std::invocable<Run&>)
  Work(Run&& run) : run_(std::forward<Run>(run)) {}  // NOLINT(google-explicit-constructor): as a function
  // `lasts`: in a simulation, 0 or more.
  Work(std::function<void()> run, Duration lasts) : run_(std::move(run)), lasts_(lasts) {}

  explicit operator bool() const { return run_ != nullptr; }
  void operator()() const { run_(); }
  [[nodiscard]] std::optional<Duration> lasts() const { return lasts_; }

 private:
  std::function<void()> run_;
  std::optional<Duration> lasts_;
};

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
  // Why it could not go on. It has then left the run, or is about to.
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  // Called after every other call: the work that the engine wants done, unless earlier work is not done. Work
  // is done, or thrown away undone when the engine's driver ends.
  using Work = cluster::Work;
  [[nodiscard]] virtual Work take_work() { return {}; }
  // The work that was taken is done.
  virtual void worked(Instant) {}
  // The same for the queue beside. Work of both is done at the same time, so it shares nothing that changes.
  [[nodiscard]] virtual Work take_side_work() { return {}; }
  virtual void side_worked(Instant) {}
  // Remarks for people since the last call, for the log of the node.
  [[nodiscard]] virtual std::vector<std::string> take_remarks() { return {}; }
  // Reports that it tells its coordinator. The member does not leave before they are settled.
  [[nodiscard]] virtual Told told() { return {}; }
  // When something of what it has to bring before it leaves came to the coordinator last.
  [[nodiscard]] virtual std::optional<Instant> moved() const { return std::nullopt; }
  // Nothing: it waits for nobody. Only engines whose members take steps together can stop each other.
  [[nodiscard]] virtual std::optional<Awaited> awaits() const { return std::nullopt; }
  // Counters for the metrics of the node.
  [[nodiscard]] virtual std::vector<CounterSample> counters() const = 0;
};

}  // namespace gossamer::cluster
