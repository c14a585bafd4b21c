// SPDX-License-Identifier: Apache-2.0
//
// BlockedTopK<E>: the exact k best labels of each query of a block, out of any number of labels: score =
// dot(query, row) + bias. Rows go by in panels of kPanelRows; one small product scores a panel for all
// queries, one comparison per label and query finds the few that enter a list.
//
//   BlockedTopK<float> top(isa, {.hidden = 128, .queries = 256, .k = 5});
//   top.begin(hidden_of_queries, 250);
//   top.scan({.rows = w, .stride = 128, .bias = bias, .first = 0, .count = labels});
//   for (const ScoredLabel& best : top.best(17)) ...
//
// Order: higher score first, ties by smaller id; NaN and minus infinity never enter. With equal E and ISA the
// result does not depend on how the labels are cut into scans or over objects (add), nor on the other
// queries. For E = Bf16 query and row are rounded to bf16: exact for the rounded operands. Cost per query:
// labels * hidden multiply-adds, plus about k ln(labels / k) insertions. Memory: one packed block of queries,
// one panel, k entries a query; nothing is allocated after construction. Thread rule: one owner per object.
// To use several workers give each its own object, and partition the queries, or the labels (then `add` the
// others' lists).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/aligned_array.h"
#include "kernels/products.h"

namespace gossamer::kernels {

struct ScoredLabel {
  std::uint32_t label = 0;
  float score = -std::numeric_limits<float>::infinity();
  bool operator==(const ScoredLabel&) const = default;
};

// Whether a comes before b.
[[nodiscard]] constexpr bool better(const ScoredLabel& a, const ScoredLabel& b) {
  return a.score > b.score || (a.score == b.score && a.label < b.label);
}

struct TopKShape {
  std::size_t hidden;   // multiple of kPanelMultiple
  std::size_t queries;  // most queries of one block, > 0; 256 and more use the products well
  std::size_t k;        // > 0
};

// Labels first .. first + count - 1; row i of `rows` is that of label first + i.
struct LabelRows {
  const float* rows;
  std::size_t stride;  // elements between rows, >= hidden
  const float* bias;   // [count], null for none
  std::uint32_t first;
  std::uint32_t count;
};

template <class E>
class BlockedTopK {
 public:
  // Requires supported(isa). As PanelProducts: construct on one thread at a time in the process.
  BlockedTopK(Isa isa, TopKShape shape);

  // Starts a block: queries[count][hidden], contiguous; 0 <= count <= shape.queries. Forgets the last one.
  void begin(const float* queries, std::size_t count);
  // Scores these labels for all queries. Ids rise from scan to scan: rows.first is above all ids scanned
  // before.
  void scan(const LabelRows& rows);
  // Merges a list that another object found for the same query among other labels.
  void add(std::size_t query, std::span<const ScoredLabel> found);
  // Best first; fewer than k if fewer labels went by. Valid until the next call of begin, scan or add.
  [[nodiscard]] std::span<const ScoredLabel> best(std::size_t query) const;

 private:
  void load_panel(const LabelRows& rows, std::size_t start);
  void insert(std::size_t query, ScoredLabel candidate);

  const Kernels* kernels_;
  PanelProducts<E> products_;
  TopKShape shape_;
  std::size_t queries_ = 0;
  std::uint64_t next_label_ = 0;
  AlignedArray<float> padded_;  // [batch][hidden]
  AlignedArray<E> packed_;
  AlignedArray<E> panel_;
  AlignedArray<float> scores_;      // [kPanelRows][batch]
  AlignedArray<float> thresholds_;  // [batch]: the k-th best; infinity for padding
  AlignedArray<ScoreHit> hits_;
  AlignedArray<ScoredLabel> best_;     // [queries][k]
  AlignedArray<std::uint32_t> found_;  // [queries]: entries of best_
};

extern template class BlockedTopK<float>;
extern template class BlockedTopK<Bf16>;

}  // namespace gossamer::kernels
