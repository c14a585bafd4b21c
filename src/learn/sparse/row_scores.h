// SPDX-License-Identifier: Apache-2.0
//
// RowScores: the scores of one worker's active rows in a step. They are for an exchange of the scores
// themselves and not only their sums (docs/protocols/sparse-step.md, "The exchange of D-SLIDE").
//
// Owner: the learner. Thread rule: one worker writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::sparse {

// Stands for the score of a row that the sample does not score.
inline constexpr float kNotScored = -1e30F;

struct RowScores {
  void clear() {
    rows.clear();
    scores.clear();
  }
  // Adds a row with the scores of all samples; `bias` is added to each.
  void add(std::uint32_t row, std::span<const float> of_samples, float bias) {
    rows.push_back(row);
    for (const float score : of_samples) scores.push_back(score + bias);
  }
  [[nodiscard]] static bool scored(float score) { return score > kNotScored / 2; }
  [[nodiscard]] std::uint64_t bytes() const {
    return sizeof(float) * scores.capacity() + sizeof(std::uint32_t) * rows.capacity();
  }

  std::vector<std::uint32_t> rows;
  std::vector<float> scores;  // [rows][samples], with biases and corrections
};

}  // namespace gossamer::sparse
