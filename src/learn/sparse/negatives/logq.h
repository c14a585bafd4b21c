// SPDX-License-Identifier: Apache-2.0
//
// LogQ: the correction for scoring only some labels. A label enters a step's active set with probability q.
// Its score s becomes s - ln q. The sum of exp over the active set then estimates the sum over all labels.
// (Bengio and Senecal, "Adaptive importance sampling", 2008; Yi et al., RecSys 2019.)
//
// N: training records. f: records with the label. B: samples of a batch. P: the chance that the label is
// drawn as a negative. Then
//   kAll    q = 1 - exp(-B f / N) (1 - P), on every active label. Also acts as a prior by frequency.
//   kExact  q = 1 - (1 - f / N)^(B - 1) (1 - P) for the labels of the other samples; q = 1 for a sample's
//           own labels, which are there for certain. Given the sample, the partition sum is unbiased, as
//           far as the companions are independent draws. A pass draws each record once, so B has to be
//           small beside N (docs/lsh.md).
//   kNone   no correction.
//
// Samples of the batch may ask hash tables for further labels (hash_negatives.h). All is then given these
// samples: their labels and what they find are in the active set for certain. A of them ask, with numbers 0
// to A - 1:
//   kExact  q = 1 for certain labels; q = 1 - (1 - f / N)^(B - 1 - A) (1 - P) for the others. A sample that
//           asks has one more companion that does not ask. So sample number A is taken as given too: for
//           samples that ask, its labels have q = 1. The partition sum stays unbiased as above.
//   kAll    q = 1 for found labels in the partition sum; a sample's own labels keep the prior by frequency.
//
// q depends on the label's count only, so the corrections of common counts are kept in a table per batch
// size. Thread rule: the owner calls set_batch() between steps; the rest concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/sparse/negatives/negatives.h"

namespace gossamer::sparse {

enum class LogQ { kAll, kExact, kNone };

class LogQCorrection {
 public:
  // Borrows `sampler` for its life.
  LogQCorrection(LogQ kind, const NegativeSampler& sampler, std::uint64_t records);

  // Sets the number of samples of the steps to come, and how many of them ask: the first ones. Cheap when
  // both are the same as before.
  void set_batch(std::size_t batch, std::size_t asking = 0);

  // -ln q of a label with this training count; a count of 0 is taken as 1. Requires set_batch().
  [[nodiscard]] float correction(std::uint32_t count) const {
    return count < table_.size() ? table_[count] : compute(count);
  }
  // The same for a sample's own labels.
  [[nodiscard]] float own_correction(std::uint32_t count) const {
    return kind_ == LogQ::kExact ? 0 : correction(count);
  }
  // The number of samples that ask; their labels are certain where own_labels_certain().
  [[nodiscard]] std::size_t asking() const { return asking_; }
  [[nodiscard]] bool own_labels_certain() const { return kind_ == LogQ::kExact; }

 private:
  [[nodiscard]] float compute(std::uint32_t count) const;

  LogQ kind_;
  const NegativeSampler& sampler_;
  double records_;
  std::size_t batch_ = 0;
  std::size_t asking_ = 0;
  std::vector<float> table_;
};

}  // namespace gossamer::sparse
