// SPDX-License-Identifier: Apache-2.0
//
// PartScorer: what a member that holds a part of a network computes for a block of queries. These are its
// columns of their hidden vectors, layer by layer, and the best labels among the rows that it holds. Hidden
// vectors are matrices of kQueryBlock rows. The user puts the columns of all parts together.
//
//   PartScorer scorer(part, activation, kernels, compute);
//   scorer.embed(queries, h);                 // its columns of the first hidden layer
//   for (l = 1; l < layers; ++l) scorer.deepen(l, h of the layer before, h);
//   scorer.search({last h}, k); scorer.found(q, labels);
//
// All numbers are, to the bit, the same as a Predictor's that has the whole network. Memory: width + 32 bytes
// for each row held. Thread rule: the one thread of the Compute; nothing changes the network meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engines/sparse/model/ranking.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

// A hidden layer of some queries. Its rows are `stride` apart, which is row_stride() of the layer's width.
// Numbers past the width are zero.
struct HiddenRows {
  float* values = nullptr;
  std::size_t stride = 0;
};

class PartScorer {
 public:
  // Borrows all arguments. Rounds the output rows to bytes, on all workers.
  PartScorer(const sparse::Network& part, kernels::Activation activation, const kernels::Kernels& kernels,
             host::Compute& compute);
  PartScorer(const PartScorer&) = delete;
  PartScorer& operator=(const PartScorer&) = delete;

  // The columns of the first hidden layer. Queries are as the network sees them, weighted.
  void embed(const data::SparseRows& queries, HiddenRows out) const;
  // The units of dense layer 1, 2, ... that are here, from the whole layer before. Requires that there is
  // such a layer.
  void deepen(std::size_t layer, std::size_t queries, HiddenRows in, HiddenRows out) const;
  // Requires k >= 1 and 1..kQueryBlock queries.
  void search(const QueryMatrix& queries, std::size_t k);
  // Appends what the last search found for query q among the rows here, best first.
  void found(std::size_t q, std::vector<Scored>& labels) const;

 private:
  void activate(float* values, std::size_t count) const;

  const sparse::Network& part_;
  const kernels::Activation activation_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  // The rows held. Their labels rise, so that ties are ordered by label. `rows_` tells where they stand.
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> rows_;
  std::optional<RowSearch> search_;  // nothing: no rows are held
};

}  // namespace gossamer::sparse_engine
