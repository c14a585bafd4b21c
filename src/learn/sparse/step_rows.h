// SPDX-License-Identifier: Apache-2.0
//
// StepRows: the rows that a step touches, listed by the worker that owns them. Output rows are those of the
// batch's labels, of drawn negatives and of what samples found (hash_negatives.h). Embedding rows are those
// of its features.
//
// A step begins with begin(), or with begin() and recall(). Then select() lists a worker's output rows. Where
// samples ask, this comes after they have asked.
//
// Owner: the learner. Thread rule: select(), list_features(), active() and features() concurrently, each
// worker its own; the rest alone. Allocates only when a step is larger than all before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "learn/data/rows.h"
#include "learn/sparse/active_set.h"
#include "learn/sparse/inverted_lists.h"
#include "learn/sparse/negatives/found_rows.h"
#include "learn/sparse/negatives/logq.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

class StepRows {
 public:
  // Borrowed.
  struct Parts {
    const Network& network;
    const NegativeSampler& sampler;
    const LogQCorrection& logq;
  };
  // `seed`: for the negatives.
  StepRows(const Parts& parts, std::uint64_t seed, int workers);

  // `asked`: what the step's samples will find; null: they do not ask.
  void begin(const FoundRows* asked);
  // No sample asks: `found` is what they found when the step was computed before. It must live to the end of
  // the step.
  void recall(const FoundRows& found);
  [[nodiscard]] bool asking() const { return asking_; }
  // The number of samples of a batch that ask or have asked: the first ones.
  [[nodiscard]] std::size_t askers(std::size_t batch) const {
    return found_ == nullptr ? 0 : found_->asking(batch);
  }

  // Whether this node holds any output row.
  [[nodiscard]] bool holds_rows() const { return holds_rows_; }
  void select(int worker, const data::Batch& batch, StepNumber step);
  void list_features(int worker, const data::Batch& batch);
  [[nodiscard]] const ActiveSet& active(int worker) const { return of(worker).active; }
  [[nodiscard]] const InvertedLists& features(int worker) const { return of(worker).features; }

  // Sums over the workers.
  [[nodiscard]] std::size_t active_rows() const;
  [[nodiscard]] std::size_t unique_features() const;
  // The most scores of samples that there will be. Requires that what samples find is not shared.
  [[nodiscard]] std::uint64_t most_scores(const data::Batch& batch) const;

  [[nodiscard]] std::uint64_t bytes() const;

 private:
  // One worker's part.
  struct alignas(64) Lists {
    ActiveSet active;
    InvertedLists features;
  };
  [[nodiscard]] Lists& of(int worker) { return lists_[static_cast<std::size_t>(worker)]; }
  [[nodiscard]] const Lists& of(int worker) const { return lists_[static_cast<std::size_t>(worker)]; }
  void add_found(ActiveSet& active, const data::Batch& batch) const;

  Parts parts_;
  std::uint64_t seed_;
  bool holds_rows_;
  std::vector<Lists> lists_;
  bool asking_ = false;               // whether samples ask
  const FoundRows* found_ = nullptr;  // null: nothing is found
};

}  // namespace gossamer::sparse
