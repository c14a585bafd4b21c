// SPDX-License-Identifier: Apache-2.0
//
// FleetJob: what the members of a sparse run train together, as one member has it. It is the same at all
// members, except for the machine's parts. Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/ids.h"
#include "base/probe.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/sent_bytes.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/fleet/step/fleet_defect.h"
#include "engines/sparse/fleet/step/fleet_probe.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/schedule.h"
#include "net/codec/codec.h"

namespace gossamer::sparse_engine {

// A step that this member has just applied.
struct FleetStep {
  Epoch epoch;  // of the layout
  StepNumber step;
  std::size_t rank = 0;     // this member's
  std::size_t members = 0;  // that took part in it
  double loss = 0;          // this member's part: the sum over members is the loss of the step
  bool fresh = true;        // the step began when all before it were applied
  engine::SentBytes sent;   // before the step's last round
  // Rows found by all hash tables, also of members that may be gone. Null without hash tables. Valid during
  // the call.
  const sparse::FoundRows* found = nullptr;
};

// What is kept of the run when all its nodes are gone. All members save the state before the same step, each
// the part that it holds. A part alone is worth nothing.
struct FleetCheckpoints {
  std::uint64_t every_steps = 0;  // 0: the number of steps does not matter
  // Asked once a step: whether it is time for a checkpoint. One member's yes counts for all. May be empty. It
  // says no for `every` after each save, and always if `every` is 0.
  std::function<bool()> due = {};
  Duration every = {};
  // Begins to save `part` as it is now, when all steps before `step` are applied. It does not need `part`
  // after it returns. It handles its failures itself. Empty: nothing is saved.
  std::function<void(StepNumber step, sparse::Network& part)> save = {};
  // Waits until a save that has begun has ended.
  std::function<void()> finish = {};
  // Asked now and then on the loop's thread, when the run is to end: whether the saved state is where it
  // outlives this node. Empty: it is, as soon as it is finished.
  std::function<bool()> lasts = {};
};

// Whether a run of several nodes never has its trained network in one memory. Then the members measure it
// together, and it is put together on the disk (docs/adr/0019-members-score-what-they-hold.md). `config` is
// resolved.
[[nodiscard]] inline bool stays_in_parts(const TrainConfig& config) {
  return !config.predict.instances && config.data.format != data::RecordFormat::kText;
}

// Whether its members answer queries by what they have trained, before it ends. `held_out` is the recipe's.
[[nodiscard]] inline bool answers_at_the_end(const TrainConfig& config, std::uint64_t held_out) {
  return stays_in_parts(config) && (!config.data.test.empty() || held_out > 0);
}

struct FleetJob {
  FleetShape shape;
  sparse::RowOrder order;  // of the labels, for shards of 2^shape.shard_shift rows
  sparse::TableMoments moments;
  sparse::NetworkInit init;
  sparse::LearnerOptions learner;
  // As for one node that holds everything. Nothing: no hash tables find labels.
  std::optional<sparse::HashNegativeOptions> hashed = {};
  sparse::Schedule schedule;  // for total_steps steps
  // The run begins with this step. `restore` gives a part its state then. Without `restore` the state is the
  // initial one.
  StepNumber start = {};
  std::function<Result<void>(sparse::Network& part)> restore = {};
  std::uint64_t snapshot_every = 16;              // steps, >= 1
  net::Codec codec = net::Codec::kF32;            // for the exchanges of a step
  ExchangeKind exchange = ExchangeKind::kShares;  // dslide: not with hash tables whose sets are shared
  std::size_t staleness = 0;  // steps whose updates a step does without, 0 or 1 (step_order.h)
  // Borrowed for the job's life. Labels are output rows (sparse::by_row(), RowSteps).
  const sparse::LabelCounts& labels;
  StepSource& steps;
  const kernels::Kernels& kernels;
  host::Compute& compute;
  // The job's thread calls these, too.
  FleetCheckpoints checkpoints = {};
  // After each step.
  std::function<void(const FleetStep&)> stepped = {};
  // Called after the first step that follows a recovery, and before the next, on the same thread.
  std::function<void(const engine::FleetRecovery&)> recovered = {};
  // All members are on one machine. They count as equally fast, whatever the clock says of their load.
  bool one_machine = false;
  // Called after the last step, and again whenever the part that this member holds has changed since. Takes
  // the member's part of the trained network, so that the parts can be put together. May be empty.
  std::function<Result<void>(sparse::Network& part)> deliver = {};
  // After deliver() the member answers the lead's questions about its part, so that the lead can measure the
  // trained network (serve/lead_questions.h).
  bool answers = false;
  // For a simulation: changes what this member sends in an exchange. Its length stays.
  std::function<void(Slices& sent)> falsify = {};
  // Likewise, with one thread that is both loop and computing thread.
  FleetDefect defect = FleetDefect::kNone;
  ProbeCounts<FleetProbe>* probes = nullptr;

  // Whether the protection is in place that the defect would switch off.
  [[nodiscard]] bool guarded(FleetDefect without) const { return defect != without; }
};

}  // namespace gossamer::sparse_engine
