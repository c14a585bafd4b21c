// SPDX-License-Identifier: Apache-2.0
//
// InstanceScorer: what a member that holds a share of the training rows finds for a block of queries. These
// are the nearest of its rows by input cosine and by hidden cosine, and its part of the sums of cosines to
// centroids.
//
//   InstanceScorer scorer(part, {.features, .labels}, width, kernels, compute);
//   scorer.search(queries as they are compared, {hidden vectors}, 100); scorer.by_input(q);
//   scorer.by_hidden(q); scorer.sum(queries, labels of each, sums);
//
// All numbers are, to the bit, the same as a Predictor's that has all rows. Memory: 8 bytes a feature entry
// (16 while it is built), and 4 a feature twice. In addition, for each row, width * 3 + 40 bytes, and 128 for
// the cosines of the queries that go together. All workers share those rows. Thread rule: the one thread of
// the Compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/model/instance_part.h"
#include "engines/sparse/predict/neighbours.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"

namespace gossamer::sparse_engine {

class InstanceScorer {
 public:
  // For hidden vectors of `width`. Builds the index of the rows. Borrows kernels and Compute.
  InstanceScorer(InstancePart part, IndexShape shape, std::size_t width, const kernels::Kernels& kernels,
                 host::Compute& compute);
  InstanceScorer(const InstanceScorer&) = delete;
  InstanceScorer& operator=(const InstanceScorer&) = delete;

  // Finds the best `neighbours` >= 1 rows for each of hidden.count queries. There are as many hidden vectors.
  // They are not scaled to length 1 yet, and padded with zeros to their stride.
  void search(const data::SparseRows& queries, const QueryMatrix& hidden, std::size_t neighbours);
  // What the last search found for query q, best first.
  [[nodiscard]] std::span<const FoundRow> by_input(std::size_t q) const { return by_input_[q]; }
  [[nodiscard]] std::span<const FoundRow> by_hidden(std::size_t q) const { return by_hidden_[q]; }

  // InstanceIndex::centroid_sum() for each label of each query, one after the other. Requires as many sums as
  // labels.
  void sum(const data::SparseRows& queries, const data::LabelSets& labels, std::span<std::int64_t> sums);
  // 1 / the length of the label's centroid. Requires that the member holds the label's output row.
  [[nodiscard]] float inverse_length(std::uint32_t label) const { return part_.inverse_lengths.of(label); }
  [[nodiscard]] std::size_t rows() const { return part_.number.size(); }
  // The labels of a row, by its number among all. Nothing if the row is not here.
  [[nodiscard]] std::optional<std::span<const std::uint32_t>> labels_of(std::uint32_t number) const;

 private:
  struct Worker {
    InstanceIndex::Scratch scratch;
    std::vector<Scored> nearest;
  };

  // Called with the cosines of one query, on any worker.
  using UseCosines = std::function<void(std::size_t q, std::span<const float> cosines, Worker& worker)>;
  void for_each(const data::SparseRows& queries, const UseCosines& use);
  void list(std::size_t q, std::span<const float> cosines, const float* unit, std::size_t neighbours,
            Worker& worker);

  InstancePart part_;
  const std::size_t width_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  InstanceIndex index_;
  std::optional<RowSearch> search_;  // nothing: no rows are held
  AlignedArray<float> units_;        // [kQueryBlock][stride] hidden vectors of length 1
  AlignedArray<float> cosines_;      // [kIndexQueries][padded rows of the index]
  std::vector<Worker> workers_;
  std::vector<std::vector<FoundRow>> by_input_;
  std::vector<std::vector<FoundRow>> by_hidden_;
};

}  // namespace gossamer::sparse_engine
