// SPDX-License-Identifier: Apache-2.0
//
// PipelineJob: what a member of a pipeline run computes, made from the run's configuration. All members of a
// run have equal jobs, but for `memory_bytes` and `room`.
//
// Thread rule: immutable. make_stage and read are called on the thread that computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "exact/step_factors.h"
#include "net/codec/codec.h"

namespace gossamer::pipeline {

class StageBench;

struct PipelineJob {
  // A stage with the weights of the run's seed: every cut of the model begins with the same ones.
  std::function<Result<std::unique_ptr<StageBackend>>(const StageCut&)> make_stage = {};
  // Reads the windows of the samples [first, first + windows): windows * context tokens, and as many targets.
  std::function<Result<void>(SampleId first, std::uint32_t windows, std::span<TokenNumber> tokens,
                             std::span<TokenNumber> targets)>
      read = {};
  // These are called on the thread that computes, between two steps. Each may be empty.
  //   restore  gives a stage the state that the run begins with, if `start` is not 0
  //   save     keeps the state before step `next`: a failure costs one checkpoint, and is told elsewhere
  //   deliver  keeps the state after the last step
  std::function<Result<void>(StageBench&)> restore = {};
  std::function<void(StepNumber next, StageBench&)> save = {};
  std::function<Result<void>(StageBench&)> deliver = {};
  StepNumber start = {};
  std::uint64_t save_every = 0;  // steps; 0: never
  std::uint32_t layers = 1;
  std::uint32_t context = 1;     // tokens of a window
  std::uint64_t batch = 1;       // windows of a step
  std::uint32_t microbatch = 1;  // windows of a microbatch; the last one of a step may have fewer
  exact::RateSchedule schedule = {};
  exact::AdamWOptions adamw = {};
  double clip = 0;  // the largest norm of a step's gradient; 0: any
  // How boundaries travel where numbers are f32. Numbers of f64 travel as they are.
  net::Codec codec = net::Codec::kF32;
  bool rounds_sums = false;              // to bf16, on the way
  std::optional<StepNumber> end = {};    // the first step that the run does not take
  std::uint64_t room = 8;                // microbatches that this member may hold
  std::uint64_t memory_bytes = 1 << 30;  // for what it keeps of them

  [[nodiscard]] std::uint64_t microbatches() const { return (batch + microbatch - 1) / microbatch; }
  // The windows of one.
  [[nodiscard]] std::uint32_t windows_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(microbatch, batch - number * microbatch));
  }
  [[nodiscard]] std::uint64_t tokens_of(std::uint64_t number) const {
    return std::uint64_t{windows_of(number)} * context;
  }
  [[nodiscard]] std::uint64_t tokens() const { return batch * context; }
};

}  // namespace gossamer::pipeline
