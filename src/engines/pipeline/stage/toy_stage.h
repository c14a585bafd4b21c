// SPDX-License-Identifier: Apache-2.0
//
// ToyStage: a stage of a small network that needs no library, in double. Simulations and tests train it. All
// its operations are multiplications, additions and divisions in a fixed order, so that runs can be compared
// to the last bit on every CPU. With x the boundary [tokens, width], for each token t of a window:
//
//   embedding   x_t = token_embedding[token_t] + position_embedding[t]
//   layer       c_t = mean(x_0 .. x_t);  a_t = x_t + mix c_t;  y_t = a_t + out relu(in a_t)
//   head        o_t = head x_t;  loss = sum over t of |o_t - one_hot(target_t)|^2 / 2
//
// The scores of the token behind token t are o_t. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "engines/pipeline/stage/stage_backend.h"

namespace gossamer::pipeline {

// Each at least 1.
struct ToyShape {
  std::uint32_t vocabulary = 16;
  std::uint32_t context = 8;  // the most tokens of a window
  std::uint32_t width = 6;
  std::uint32_t hidden = 8;
  std::uint32_t layers = 4;
};

// The weights come from `seed` alone: every cut of the model begins with the same ones.
[[nodiscard]] std::unique_ptr<StageBackend> make_toy_stage(const ToyShape& shape, const StageCut& cut,
                                                           std::uint64_t seed);

}  // namespace gossamer::pipeline
