// SPDX-License-Identifier: Apache-2.0
//
// For tests: a tiny problem, and a fleet that trains it in virtual time. Thread rule: the test's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/sparse/fleet/fleet_engine.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "learn/sparse/network.h"
#include "learn/sparse/random_problem.h"
#include "simulation/engine_fleet.h"

namespace gossamer::engine {

// Random samples of 60 features and 150 labels; shards of 4 labels.
struct ProblemOptions {
  std::vector<std::size_t> dense = {};
  std::uint64_t steps = 100;
  net::Codec codec = net::Codec::kF32;
  std::size_t hidden = 116;
  std::size_t samples = 24;
  std::uint64_t snapshot_every = 5;
};

class TinyProblem {
 public:
  explicit TinyProblem(const ProblemOptions& options);
  TinyProblem(std::vector<std::size_t> dense, std::uint64_t steps, net::Codec codec = net::Codec::kF32);

  // A job of its own, as another machine would make it.
  [[nodiscard]] std::shared_ptr<const FleetJob> make_job(std::uint64_t seed = 1) const;
  [[nodiscard]] const FleetShape& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t steps() const { return options_.steps; }
  // By one learner that holds everything.
  [[nodiscard]] sparse::Network train_alone() const;

 private:
  ProblemOptions options_;
  FleetShape shape_;
  sparse::LabelCounts labels_;
};

class SparseFleet final {
 public:
  struct Options {
    std::size_t first_members = 4;
    std::size_t copies = 1;
    std::uint64_t seed = 1;
    simulation::Driver driver = simulation::Driver::kPrompt;
    Duration longest_work = from_milliseconds(5);
  };
  // `problem` outlives it.
  SparseFleet(const TinyProblem& problem, const Options& options);

  std::string join();
  [[nodiscard]] simulation::EngineFleet* operator->() { return &fleet_; }
  [[nodiscard]] FleetEngine& engine(const std::string& machine);
  [[nodiscard]] bool holds_nothing(const std::string& machine);
  // Members that live have applied all steps, and hold the whole network together.
  [[nodiscard]] bool done();
  // The lowest of all members that hold something; nothing without one.
  [[nodiscard]] std::optional<StepNumber> step();
  // Of all weights together, the length of the difference over the length. Requires done().
  [[nodiscard]] double distance_to(const sparse::Network& network);

 private:
  const TinyProblem& problem_;
  const Options options_;
  std::uint64_t joined_ = 0;
  FleetWorkload workload_;
  simulation::EngineFleet fleet_;
};

}  // namespace gossamer::engine
