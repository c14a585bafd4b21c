// SPDX-License-Identifier: Apache-2.0
//
// FleetMeasuring: the lead of a run measures the trained network before it is written. It asks the members
// that hold the parts, as a lead that serves does (docs/protocols/sparse-serving.md). Test records are read,
// and answers are ranked, on a thread of its own.
//
// If the view changes meanwhile, all records are measured anew: parts that were lost are the same only to
// rounding. So the figures are those of the parts of holders().
//
// Thread rule: the loop thread, but for the constructor and take(), which may be called before and after.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "commands/ask_fleet/query_asker.h"
#include "commands/ask_fleet/query_desk.h"
#include "commands/train/sparse_training.h"
#include "engines/sparse/serve/block_rounds.h"
#include "host/posix/mailbox.h"
#include "host/posix/serial_thread.h"
#include "node/companion.h"
#include "run/node_host.h"

namespace gossamer::commands {

class FleetMeasuring {
 public:
  // The host outlives it. `measure` is called on the thread of this object.
  FleetMeasuring(const run::NodeHost& host, StepRunner::Measure measure, sparse_engine::ModelInParts model);
  ~FleetMeasuring();
  FleetMeasuring(const FleetMeasuring&) = delete;
  FleetMeasuring& operator=(const FleetMeasuring&) = delete;

  // The loop begins. Call end() while `post` may still be called.
  void begin_loop(node::Aside aside, node::Post post);
  // Requires begin_loop().
  [[nodiscard]] QueryAsker& asker() { return *asker_; }
  // The members that hold the trained network together; none before they are ready.
  [[nodiscard]] std::set<NodeId> holders() const;
  // Called now and then, once parts of all holders are delivered. Begins to measure, if there is something to
  // measure. Returns whether the network that the holders have is measured.
  [[nodiscard]] bool done();
  // Called now and then, once the parts are delivered. Returns whether no member has become ready for so long
  // that none will: the members of a lead before have ended.
  static constexpr Duration kReadyPatience = from_seconds(600);
  [[nodiscard]] bool given_up();
  // Measures no more.
  void end();

  // What was measured of the parts of holders(), or why it could not be measured.
  [[nodiscard]] std::optional<Result<Measured>> take() { return std::exchange(measured_, std::nullopt); }

 private:
  struct Told {
    Epoch epoch;
    Result<Measured> measured;
  };
  [[nodiscard]] Result<Measured> measure(Epoch epoch);

  const run::NodeHost& host_;
  const StepRunner::Measure measure_;
  const sparse_engine::ModelInParts model_;
  QueryDesk desk_;
  std::unique_ptr<QueryAsker> asker_;
  std::optional<Instant> waits_since_;  // for a ready member, of parts that are delivered
  bool told_of_it_ = false;             // that nodes measure
  bool measuring_ = false;
  Epoch measured_epoch_;
  std::optional<Result<Measured>> measured_;  // with the parts of that epoch
  std::atomic<bool> ends_ = false;
  std::uint64_t asked_ = 0;  // query blocks, by its thread
  host::Mailbox<Told> told_;
  std::unique_ptr<host::SerialThread> thread_;  // ends first
};

}  // namespace gossamer::commands
