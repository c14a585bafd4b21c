// SPDX-License-Identifier: Apache-2.0
//
// StageOptimizer: AdamW over the tensors of a stage, with the same bits at every peer. One step:
//
//   1. The accumulators hold the sums of the whole step. squared_norm() is this stage's part of the global
//   norm.
//   2. begin_step() with the numbers of the step (exact/step_factors.h), then apply_next() until it says that
//      nothing follows. Each call changes one block of a tensor, takes its hash, and clears its accumulator.
//   3. root() is the hash over all blocks. Peers whose roots are equal hold the same stage.
//
// Tensors of two or more dimensions decay; biases and scales do not. Memory: two moments of the type of the
// weights. Sets the modes of exact/floating_modes.h in each call. Thread rule: one thread at a time, the one
// that calls the backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/aligned_array.h"
#include "engines/pipeline/stage/stage_backend.h"
#include "exact/step_factors.h"
#include "kernels/isa.h"

namespace gossamer::pipeline {

class StageOptimizer {
 public:
  // A block has so many bytes of weights at most.
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;

  // `backend` must outlive this object. Moments begin with zero.
  StageOptimizer(StageBackend& backend, const exact::AdamWOptions& options,
                 kernels::Isa isa = kernels::best_isa());

  // The squares of all accumulators, summed tensor by tensor. Infinite or NaN where one of them is.
  [[nodiscard]] double squared_norm() const;
  // Requires that no step is open.
  void begin_step(const exact::StepNumbers& numbers);
  // True: call again.
  bool apply_next();
  // Sets all accumulators to zero: the step is given up.
  void clear_gradients();

  // The hash of weights and moments as they are. Requires that no step is open.
  [[nodiscard]] std::uint64_t root() const;

  // Moments of tensor i of the backend; a checkpoint keeps them, and a restored stage gets them back.
  [[nodiscard]] Numbers first_moment(std::size_t i);
  [[nodiscard]] Numbers second_moment(std::size_t i);
  // Weights or moments were changed from outside: the next root() is computed anew. Requires that no step
  // is open.
  void state_changed();

 private:
  template <class T>
  struct Moments {
    AlignedArray<T> first, second;
  };
  using AnyMoments = std::variant<Moments<float>, Moments<double>>;
  // The elements [from, from + count) of a tensor.
  struct Block {
    std::size_t tensor, from, count;
  };

  [[nodiscard]] std::vector<Block> blocks() const;
  void update(const Block& block);
  [[nodiscard]] std::uint64_t hash(const Block& block) const;

  std::span<const StageTensor> tensors_;
  exact::AdamWOptions options_;
  kernels::Isa isa_;
  std::vector<AnyMoments> moments_;
  std::vector<Block> blocks_;
  std::optional<exact::StepNumbers> step_;  // while one is open
  mutable std::vector<std::uint64_t> block_hashes_;
};

}  // namespace gossamer::pipeline
