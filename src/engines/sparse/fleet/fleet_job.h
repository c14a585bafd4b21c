// SPDX-License-Identifier: Apache-2.0
//
// FleetJob: what the members of a sparse run train together, as one of them has it. The same at all of them
// but for the machine's parts. Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "base/probe.h"
#include "base/result.h"
#include "base/time.h"
#include "engines/sparse/batch_reader.h"
#include "engines/sparse/config.h"
#include "engines/sparse/fleet/fleet_defect.h"
#include "engines/sparse/fleet/fleet_probe.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/fusion.h"
#include "engines/sparse/step_source.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives.h"
#include "learn/sparse/network.h"
#include "learn/sparse/schedule.h"
#include "net/codec/codec.h"

namespace gossamer::engine {

// What cluster.codec asks for.
[[nodiscard]] constexpr net::Codec exchange_codec(CodecKind kind) {
  switch (kind) {
    case CodecKind::kF32: return net::Codec::kF32;
    case CodecKind::kBf16: return net::Codec::kBf16;
    case CodecKind::kInt8: break;
  }
  return net::Codec::kInt8;
}

// Handed to connections by this life of the member, with all headers (net::Links::sent_bytes).
struct SentBytes {
  std::uint64_t steps = 0;
  std::uint64_t background = 0;  // snapshots, recoveries, control
};

// A step that this member has just applied.
struct FleetStep {
  Epoch epoch;  // of the layout
  StepNumber step;
  std::size_t rank = 0;     // this member's
  std::size_t members = 0;  // that had a share in it
  double loss = 0;          // this member's share: the sum over members is the loss of the step
  bool fresh = true;        // it had all steps before it
  SentBytes sent;           // before its last round
  // By all hash tables, of members that may be gone; null without them. For the call.
  const sparse::FoundRows* found = nullptr;
};

// What a change of the view that lost or moved something has cost this member (recovery_watch.h).
struct FleetRecovery {
  Epoch epoch;        // of the layout that it ended with
  StepNumber step;    // the first after it
  std::string cause;  // for people: "node 3 was lost, node 5 joined"
  Duration total;     // from the last step before to the first after, less a median step
  // Parts of it. What is missing is what the first step took more or less than a median one.
  Duration detect;  // nothing goes on any more, until the view began to change
  Duration agree;   // members come to rest, and the coordinator decides
  Duration load;    // logs, copies and pieces come from other members
  Duration replay;  // what was lost is computed anew
  std::uint64_t steps_replayed = 0;
};

// What is kept of the run beyond the lives of all its nodes. All members save the state before the same step,
// each what it holds; what none of them does is worth nothing to the others.
struct FleetCheckpoints {
  std::uint64_t every_steps = 0;  // 0: not by steps
  // Asked once a step: it is time for one. Who says so says it for all members. May be empty.
  std::function<bool()> due = {};
  // Begins to keep `part` as it is when all steps before `step` are applied; needs it no longer when it
  // returns. A failure is its own matter. Empty: nothing is kept.
  std::function<void(StepNumber step, sparse::Network& part)> save = {};
  // Returns when what was begun has ended.
  std::function<void()> finish = {};
  // Of a run that is to end, asked on the loop's thread now and then: what was saved is where it outlives
  // this node. Empty: it is, as soon as it is finished.
  std::function<bool()> lasts = {};
};

// Whether a run of several nodes never has its trained network in one memory: members measure it, and it is
// put together on the disk (docs/adr/0019-members-score-what-they-hold.md). `config` is resolved.
[[nodiscard]] inline bool stays_in_parts(const TrainConfig& config) {
  return !config.predict.instances && config.data.format != DataFormat::kText;
}

// What the trained network is measured on, by all members together (fleet_evaluation.h).
struct FleetTest {
  BatchReader& reader;  // of test records, with the numbers that the network has for features and labels
  std::uint64_t records = 0;
  FusionOptions fusion = {};
  // The rank of each true label among the best kEvaluationDepth, from 1, or 0, of all records in their order.
  // The same at all members; called again when the view has changed meanwhile.
  std::function<Result<void>(std::span<const std::uint32_t> ranks)> tested = {};
};

struct FleetJob {
  FleetShape shape;
  sparse::RowOrder order;  // of the labels, for shards of 2^shape.shard_shift rows
  sparse::TableMoments moments;
  sparse::NetworkInit init;
  sparse::LearnerOptions learner;
  // Of one node that holds everything; nothing: no hash tables find labels.
  std::optional<sparse::HashNegativeOptions> hashed = {};
  sparse::Schedule schedule;  // total_steps of them
  // The run begins with this step, in the state that `restore` gives a part; without it in the initial one.
  StepNumber start = {};
  std::function<Result<void>(sparse::Network& part)> restore = {};
  std::uint64_t snapshot_every = 16;              // steps, >= 1
  net::Codec codec = net::Codec::kF32;            // of what is exchanged in a step
  ExchangeKind exchange = ExchangeKind::kShares;  // dslide: not with hash tables whose sets are shared
  std::size_t microbatches = 1;                   // of a step (Learner); more than one: no staleness, shares
  std::size_t staleness = 0;  // steps whose updates a step does without, 0 or 1 (step_order.h)
  // Borrowed for the job's life. Labels are output rows (sparse::by_row(), RowSteps).
  const sparse::LabelCounts& labels;
  StepSource& steps;
  const kernels::Kernels& kernels;
  host::Compute& compute;
  // These too are called on the thread that computes.
  FleetCheckpoints checkpoints = {};
  // After each step.
  std::function<void(const FleetStep&)> stepped = {};
  // After the first step after a recovery, and before the next; on that thread too.
  std::function<void(const FleetRecovery&)> recovered = {};
  // All members are on one machine: equally fast, whatever a clock says of its load.
  bool one_machine = false;
  // After the last step, and again whenever what this member holds has changed since: its part of the trained
  // network, for whoever puts the parts together. May be empty.
  std::function<Result<void>(sparse::Network& part)> deliver = {};
  // After deliver(). Nothing: there is nothing to measure it on.
  std::optional<FleetTest> test = {};
  // Of a simulation, in which loop and computing have one thread.
  FleetDefect defect = FleetDefect::kNone;
  ProbeCounts<FleetProbe>* probes = nullptr;
};

}  // namespace gossamer::engine
