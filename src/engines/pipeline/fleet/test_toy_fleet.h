// SPDX-License-Identifier: Apache-2.0
//
// Tests only: a pipeline run of ToyStages. Members train it in virtual time, and one StageBench trains it
// alone. Thread rule: the simulation's.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "engines/pipeline/fleet/pipeline_engine.h"
#include "engines/pipeline/fleet/pipeline_workload.h"
#include "engines/pipeline/stage/toy_stage.h"
#include "simulation/fleet.h"

namespace gossamer::pipeline {

// Weights by tensor, as doubles.
using ToyWeights = std::map<std::string, std::vector<double>>;

inline PipelineJob toy_job(std::uint64_t steps, const ToyShape& shape = {}) {
  static constexpr std::uint32_t kContext = 8;
  return {.make_stage = [shape](const StageCut& cut) -> Result<std::unique_ptr<StageBackend>> {
            return make_toy_stage(shape, cut, 7);
          },
          .read = [shape](SampleId first, std::uint32_t windows, std::span<TokenNumber> tokens,
                          std::span<TokenNumber> targets) -> Result<void> {
            for (std::uint32_t window = 0; window < windows; ++window) {
              Rng rng(first.value + window, Purpose::kTest, 3);
              for (std::uint32_t i = 0; i < kContext; ++i) {
                tokens[window * kContext + i] = static_cast<TokenNumber>(rng.below(shape.vocabulary));
                targets[window * kContext + i] = static_cast<TokenNumber>(rng.below(shape.vocabulary));
              }
            }
            return {};
          },
          .layers = shape.layers,
          .context = kContext,
          .batch = 11,
          .microbatch = 2,
          .schedule = {.shape = exact::RateShape::kLinear, .peak = 1e-2, .warmup = 3, .steps = steps},
          .clip = 0.05,
          .end = StepNumber(steps)};
}

inline void add_weights(StageBench& bench, ToyWeights& weights) {
  for (const StageTensor& tensor : bench.backend().tensors()) {
    const auto numbers = std::get<std::span<double>>(tensor.weights);
    weights[tensor.name] = {numbers.begin(), numbers.end()};
  }
}

// What one process has after all steps.
inline ToyWeights toy_alone(const PipelineJob& job) {
  auto bench = *StageBench::make(job, {.first = 0, .last = job.layers, .layers = job.layers});
  for (StepNumber step; step < *job.end; ++step) {
    bench->begin_attempt(step, false);
    for (std::uint64_t microbatch = 0; microbatch < job.microbatches(); ++microbatch) {
      while (bench->forward(microbatch, {})->more) continue;
      while (bench->backward(microbatch, {})->more) continue;
      while (*bench->add_next(microbatch)) continue;
    }
    const StageSum sum = bench->take_sum({});
    CHECK(sum.tokens == job.tokens());
    bench->begin_update(step, sum.squared_norm, false);
    while (*bench->update_next()) continue;
  }
  ToyWeights weights;
  add_weights(*bench, weights);
  return weights;
}

// The largest difference of two weights, over the largest weight.
inline double distance(const ToyWeights& one, const ToyWeights& other) {
  double most = 0;
  double difference = 0;
  for (const auto& [name, numbers] : one) {
    const auto& others = other.at(name);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      most = std::max(most, std::abs(numbers[i]));
      difference = std::max(difference, std::abs(numbers[i] - others.at(i)));
    }
  }
  return difference / most;
}

class ToyFleet {
 public:
  struct Options {
    std::size_t members = 4;
    std::optional<std::uint32_t> stages = {};
    std::uint64_t seed = 1;
    StepDefect defect = StepDefect::kNone;
    host::PathQuality path = {};
    std::optional<std::size_t> slow = {};  // this one computes 100 times as slowly
  };
  ToyFleet(PipelineJob job, const Options& options)
      : job_(std::make_shared<const PipelineJob>(saving(std::move(job)))),
        options_(options),
        workload_({.work = std::vector<double>(job_->layers, 1),
                   .stages = options.stages,
                   .microbatches = job_->microbatches(),
                   .tokens = job_->tokens(),
                   .exact = true}),
        fleet_({.workload = workload_,
                .configuration = "toy",
                .tracks = PipelineWorkload::tracks(),
                .first_members = options.members,
                .seed = options.seed,
                .path = options.path,
                .new_member = [this] { return new_member(); }}) {
    for (std::size_t i = 0; i < options.members; ++i) {
      simulation::SimMember::Options member = new_member();
      if (i == options.slow) member.shortest_work = member.longest_work = from_milliseconds(300);
      machines_.push_back(fleet_.join(std::move(member)));
    }
  }

  simulation::SimMember::Options new_member() {
    return {.make_engine = [this](cluster::MemberProcess& process) {
      return std::make_unique<PipelineEngine>(
          process,
          [job = job_](const std::string&) -> Result<std::shared_ptr<const PipelineJob>> { return job; },
          options_.defect);
    }};
  }

  [[nodiscard]] simulation::Fleet& fleet() { return fleet_; }
  [[nodiscard]] const std::vector<std::string>& machines() const { return machines_; }
  [[nodiscard]] PipelineEngine& engine(const std::string& machine) {
    return static_cast<PipelineEngine&>(fleet_.member(machine).engine());
  }
  // The first step that some member with a stage has not applied; 0 without one.
  [[nodiscard]] std::uint64_t step() {
    std::optional<std::uint64_t> least;
    for (const std::string& machine : fleet_.member_machines()) {
      const StepMember* const one = engine(machine).step_member();
      if (one == nullptr || !one->stage()) continue;
      const std::uint64_t next = one->next_step().value;
      least = std::min(least.value_or(next), next);
    }
    return least.value_or(0);
  }
  // What members have saved before a step, by layer.
  [[nodiscard]] const std::map<std::uint64_t, ToyWeights>& saved() const { return saved_; }
  // Runs until the step, or for so many seconds. False: it is not there.
  bool run_to(std::uint64_t step, double seconds = 120) {
    for (double at = 0; at < seconds && this->step() < step; at += 0.02) fleet_.run_for(0.02);
    return this->step() >= step;
  }
  // All layers, each by a member that has it. Empty: peers differ.
  [[nodiscard]] ToyWeights weights() {
    ToyWeights all;
    for (const std::string& machine : fleet_.member_machines()) {
      StageBench* const bench = engine(machine).bench();
      if (bench == nullptr) continue;
      ToyWeights own;
      add_weights(*bench, own);
      for (auto& [name, numbers] : own) {
        if (all.contains(name) && all.at(name) != numbers) return {};
        all[name] = std::move(numbers);
      }
    }
    return all;
  }

 private:
  PipelineJob saving(PipelineJob job) {
    job.save = [this](StepNumber next, StageBench& bench) { add_weights(bench, saved_[next.value]); };
    return job;
  }
  std::map<std::uint64_t, ToyWeights> saved_;
  const std::shared_ptr<const PipelineJob> job_;
  const Options options_;
  PipelineWorkload workload_;
  simulation::Fleet fleet_;
  std::vector<std::string> machines_;
};

}  // namespace gossamer::pipeline
