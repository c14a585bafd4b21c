// SPDX-License-Identifier: Apache-2.0
//
// TinyProblem: something small for the sparse engine to train, the same from machine to machine: random
// samples, and what one learner makes of them that holds everything. Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/probe.h"
#include "engines/sparse/fleet/fleet_defect.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/fleet_probe.h"
#include "engines/sparse/fleet/layout.h"
#include "learn/sparse/negatives.h"
#include "learn/sparse/network.h"
#include "net/codec/codec.h"

namespace gossamer::simulation {

class TinyProblem {
 public:
  struct Options {
    std::size_t features = 60;
    std::size_t labels = 150;
    std::size_t hidden = 116;
    std::vector<std::size_t> dense = {};
    std::size_t samples = 24;  // of a step
    std::size_t sampled = 10;  // negatives
    unsigned shard_shift = 2;
    std::uint64_t steps = 0;
    std::uint64_t snapshot_every = 5;
    net::Codec codec = net::Codec::kF32;  // of what is exchanged in a step
    engine::FleetDefect defect = engine::FleetDefect::kNone;
    ProbeCounts<engine::FleetProbe>* probes = nullptr;  // outlives all jobs
  };
  explicit TinyProblem(Options options);

  // A job of its own, as another machine would make it.
  [[nodiscard]] std::shared_ptr<const engine::FleetJob> make_job(std::uint64_t seed = 1) const;
  [[nodiscard]] const engine::FleetShape& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t steps() const { return options_.steps; }
  // By one learner that holds everything.
  [[nodiscard]] sparse::Network train_alone() const;

 private:
  const Options options_;
  engine::FleetShape shape_;
  sparse::LabelCounts labels_;
};

}  // namespace gossamer::simulation
