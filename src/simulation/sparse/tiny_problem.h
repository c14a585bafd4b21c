// SPDX-License-Identifier: Apache-2.0
//
// TinyProblem: a small training problem for the sparse engine, the same on every machine. It has random
// samples, and the network that one learner makes of them alone. Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/probe.h"
#include "base/slice.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "engines/sparse/fleet/step/fleet_defect.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/fleet_probe.h"
#include "engines/sparse/fleet/step/layout.h"
#include "host/api/disk.h"
#include "kernels/isa.h"
#include "learn/data/in_memory_dataset.h"
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/row_order.h"
#include "net/codec/codec.h"

namespace gossamer::simulation {

// The rows that hash tables had found for the applied steps. The tables depend on the holders and on how long
// they have held their rows. A step that begins again may be taken with other tables.
struct AppliedFound {
  struct Found {
    Epoch epoch;
    sparse::FoundRows labels;  // by numbers of labels, not rows, as jobs number rows in ways of their own
  };
  std::map<StepNumber, Found> steps;
  std::set<StepNumber> disputed;  // steps that members of one epoch have applied with different rows
};

// The kernels of simulated members: every machine has them, so a seed has the same weights on all. Sums in
// another order move a unit across its kink in about one seed of 2,000, and another one for each instruction
// set.
inline constexpr kernels::Isa kSimulatedIsa = kernels::Isa::kSse4;

class TinyProblem {
 public:
  struct Options {
    std::size_t features = 60;
    std::size_t labels = 150;
    std::size_t hidden = 116;
    std::vector<std::size_t> dense = {};
    std::size_t samples = 24;       // of a step
    std::size_t features_each = 6;  // at most
    std::size_t labels_each = 4;    // at most
    std::size_t sampled = 10;       // negatives
    // Hash tables that find further negatives.
    std::optional<sparse::HashNegativeOptions> hashed = {};
    unsigned shard_shift = 2;
    std::uint64_t steps = 0;
    std::uint64_t snapshot_every = 5;
    net::Codec codec = net::Codec::kF32;  // of the matrices exchanged in a step
    sparse_engine::ExchangeKind exchange = sparse_engine::ExchangeKind::kShares;
    // The disk for checkpoints, in "/checkpoints"; outlives all jobs. Jobs begin with the newest whole
    // checkpoint.
    host::Disk* disk = nullptr;
    std::uint64_t checkpoint_every = 0;
    std::function<bool()> lasts = {};  // FleetCheckpoints::lasts of all members
    Duration checkpoint_time = {};     // FleetCheckpoints::every of all members, none of which asks
    // Called when a member delivers its part.
    std::function<void(NodeId)> delivered = {};
    std::size_t staleness = 0;
    // Steps that members began only after all steps before; outlives all jobs.
    std::set<StepNumber>* fresh = nullptr;
    AppliedFound* found = nullptr;  // filled by members; outlives all jobs
    kernels::Isa isa = kSimulatedIsa;
    sparse_engine::FleetDefect defect = sparse_engine::FleetDefect::kNone;
    ProbeCounts<sparse_engine::FleetProbe>* probes = nullptr;  // outlives all jobs
    // Called by all members.
    std::function<void(const engine::FleetRecovery&)> recovered = {};
    // The lead measures the trained network on so many records (sparse_measuring.h).
    std::size_t test_records = 0;
  };
  explicit TinyProblem(Options options);

  using Falsify = std::function<void(Slices& sent)>;  // FleetJob::falsify
  // A job of its own, as another machine would make it. A job with checkpoints writes them as `node`.
  [[nodiscard]] std::shared_ptr<const sparse_engine::FleetJob> make_job(std::uint64_t seed = 1,
                                                                        NodeId node = NodeId(1),
                                                                        Falsify falsify = {}) const;
  [[nodiscard]] const sparse_engine::FleetShape& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t steps() const { return options_.steps; }
  [[nodiscard]] const data::InMemoryDataset& test_records() const { return test_records_; }
  // The order of labels in the parts that members hold.
  [[nodiscard]] sparse::RowOrder order() const { return {labels_.count, shape_.shard_shift}; }
  // The ranks of the true labels of the test records, by one process with the network of train_alone().
  [[nodiscard]] std::vector<std::uint32_t> ranks_alone(sparse::Network network) const;
  // The step with which jobs begin.
  [[nodiscard]] StepNumber start() const { return start_; }
  // The network that one process makes that holds everything.
  // - `fresh`: steps that wait for all before them, beside those before which a snapshot is due. A fleet
  //   found them when its view changed.
  // - `found`: the rows that samples find in each step, in place of tables over all rows; null: such tables
  //   find them.
  // - `nudge`: the seed of changes to the weights at first, each by 3e-7 of its value at most.
  [[nodiscard]] sparse::Network train_alone(const std::set<StepNumber>& fresh = {},
                                            const AppliedFound* found = nullptr,
                                            std::optional<std::uint64_t> nudge = {}) const;

 private:
  [[nodiscard]] sparse_engine::CheckpointedRun run() const;

  const Options options_;
  sparse_engine::FleetShape shape_;
  sparse::LabelCounts labels_;
  data::InMemoryDataset test_records_;
  StepNumber start_;
};

}  // namespace gossamer::simulation
