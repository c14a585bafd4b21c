// SPDX-License-Identifier: Apache-2.0
//
// The labels that are scored in a step beyond a batch's own positives, and how often labels occur in
// training. The sampling corrections (logq.h) are made of both.
//
// Thread rule: immutable after construction, any thread. Owner: the trainer for LabelCounts, the learner for
// the sampler.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"
#include "learn/data/dataset.h"
#include "learn/sparse/network/row_order.h"

namespace gossamer::sparse {

struct LabelCounts {
  std::vector<std::uint32_t> count;  // [labels]: records that have the label; by_row(): by its row
  std::uint64_t records = 0;
};
// Reads the whole dataset once.
[[nodiscard]] LabelCounts count_labels(const data::Dataset& dataset);
// From counts by label to counts by output row.
[[nodiscard]] LabelCounts by_row(const LabelCounts& labels, const RowOrder& order);

enum class Negatives {
  kInBatch,    // the other samples' positives only
  kUniform,    // and draws, uniform over the labels seen in training
  kFrequency,  // and draws, in proportion to count^exponent
  kLsh,        // and rows that hash tables find (hash_negatives.h); nothing is drawn
};

struct NegativeOptions {
  Negatives kind = Negatives::kInBatch;
  std::size_t sampled = 0;  // draws a step, with replacement; unused for kInBatch and kLsh
  double exponent = 0.75;   // for kFrequency
};

// Draws labels by Walker's alias method: constant time a draw, one cache line.
class NegativeSampler {
 public:
  // Labels with count 0 are never drawn. Counts are by row, and draws are told as rows. The drawn labels are
  // the same in any order of rows.
  NegativeSampler(const NegativeOptions& options, const LabelCounts& rows, const RowOrder& order = {});

  // The number of draws in a step; 0 when there is nothing to draw from.
  [[nodiscard]] std::size_t draws() const { return slots_.empty() ? 0 : options_.sampled; }
  // Calls sink(row) for each of the step's draws, with replacement.
  template <class Sink>
  void draw_all(Rng& rng, Sink&& sink) const {
    // The table is larger than the cache: a block of draws waits for memory together.
    constexpr std::size_t kBlock = 32;
    std::array<const Slot*, kBlock> slot;
    std::array<float, kBlock> toss;
    for (std::size_t first = 0; first < draws(); first += kBlock) {
      const std::size_t n = std::min(kBlock, draws() - first);
      for (std::size_t i = 0; i < n; ++i) {
        slot[i] = &slots_[(std::uint64_t{rng.next_u32()} * slots_.size()) >> 32];
        toss[i] = rng.uniform();
        __builtin_prefetch(slot[i]);
      }
      for (std::size_t i = 0; i < n; ++i) sink(toss[i] < slot[i]->keep ? slot[i]->row : slot[i]->alias);
    }
  }
  // The chance that a label of this training count is among the draws of a step: 1 - (1 - p)^draws.
  [[nodiscard]] double chance(std::uint32_t count) const;

 private:
  struct Slot {
    float keep;
    std::uint32_t row;
    std::uint32_t alias;
  };
  [[nodiscard]] double weight(std::uint32_t count) const;

  NegativeOptions options_;
  double total_weight_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace gossamer::sparse
