// SPDX-License-Identifier: Apache-2.0
//
// InstanceIndex: exact cosines of a query to all training rows. From them follow the nearest rows and the
// cosines to label centroids (Rocchio).
//
// An inverted index. The cosines of a query are a sum of columns over its features. Columns of rare features
// are lists of (row, value). A column is dense if its feature is in more than one row in kDenseShare, because
// adding eight values at a time beats scattering one. Dense columns pay only when they come from the cache:
// kIndexQueries queries go together through the rows, kChunk rows at a time. Nothing is skipped or bounded.
// Results are exact up to rounding, and depend on the query alone.
//
// A part of the rows has, bit for bit, the cosines of the whole. Whether a column is dense depends on the
// frequency of its feature among all rows. So the terms of a cosine are added up in the same order. Sums over
// the rows of a label consist of cosines rounded to multiples of 2^-33, as whole numbers. So sums of parts
// add up to the sum of the whole, in any order. A cosine of 2^-9 and more is such a multiple already.
//
// Borrows the kernels for its life, and the instances while it is built. Thread rule: immutable after
// construction, any thread; the buffers that a caller passes are its own. Memory: 8 bytes a feature entry in
// lists. A dense column costs 4 bytes a row, which is at most 4 kDenseShare bytes an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/model/ranking.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/rows.h"

namespace gossamer::sparse_engine {

inline constexpr std::size_t kDenseShare = 8;
// The most queries of one call of cosines().
inline constexpr std::size_t kIndexQueries = 32;

struct IndexShape {
  std::size_t features = 0;
  std::size_t labels = 0;
};

// Whether a feature in `rows_with_it` of all `rows` rows has a dense column.
[[nodiscard]] bool is_dense(std::uint32_t rows_with_it, std::size_t rows);

// The cosine to a label's centroid, from the sum of a query's cosines to the rows of the label, in units of
// 2^-33.
[[nodiscard]] float centroid_cosine(std::int64_t sum, float inverse_length);

// 1 / the length of sums of rows, one label after the other.
class CentroidLengths {
 public:
  // Indices of rows are below `features`.
  explicit CentroidLengths(std::size_t features) : sum_(features, 0) {}
  void add(const data::SparseRow& row);
  // 1 / the length of the sum of the rows added since the last call; 0 for a sum of length 0. Depends on the
  // order of the rows.
  [[nodiscard]] float take_inverse();

 private:
  std::vector<double> sum_;
  std::vector<std::uint32_t> touched_;
};

class InstanceIndex {
 public:
  // Requires instances whose indices are below the shape. Builds centroid norms on all workers.
  InstanceIndex(const Instances& instances, IndexShape shape, const kernels::Kernels& kernels,
                host::Compute& compute);
  // An index of some of all rows; dense[f] != 0 if feature f is_dense() among all rows. Has no
  // centroid_cosine().
  InstanceIndex(const Instances& part, IndexShape shape, std::span<const std::uint8_t> dense,
                const kernels::Kernels& kernels);

  // Size of a query's cosines: a value per row, then zeros.
  [[nodiscard]] std::size_t padded_rows() const { return segments_ * kSegment; }

  // Memory that cosines() uses again; one per thread.
  struct Scratch {
    struct List {
      std::uint32_t at;  // the next entry of the feature's list
      std::uint32_t end;
      float value;
    };
    std::vector<std::uint32_t> column;
    std::vector<float> column_value;
    std::vector<std::size_t> column_begin;  // per query
    std::vector<List> list;
    std::vector<std::size_t> list_begin;  // per query
  };

  // Computes out[q][r] = query q . row r, a cosine for a query of length 1. At most kIndexQueries queries;
  // out is [queries][padded_rows()].
  void cosines(std::span<const data::SparseRow> queries, Scratch& scratch, std::span<float> out) const;
  // Computes them for `rows` alone, the rows of a worker. Together all workers compute the same. Other places
  // of `out` stay.
  void cosines(std::span<const data::SparseRow> queries, const host::Range& rows, Scratch& scratch,
               std::span<float> out) const;
  [[nodiscard]] host::Range rows_of_worker(int worker, int workers) const;

  // Finds the `count` rows of the highest cosines above 0, best first; fewer if fewer are above 0.
  void nearest(std::span<const float> cosines, std::size_t count, std::vector<Scored>& out) const;

  // The sum of the cosines to the label's rows, in units of 2^-33. A cosine that is not finite, or beyond
  // 2^20, counts nothing.
  [[nodiscard]] std::int64_t centroid_sum(std::uint32_t label, std::span<const float> cosines) const;
  // Cosine to the centroid of the label's rows; 0 for a label without rows.
  [[nodiscard]] float centroid_cosine(std::uint32_t label, std::span<const float> cosines) const;

 private:
  // Rows per piece of a dense column. About 60 pieces fit the first cache.
  static constexpr std::size_t kSegment = 128;
  static constexpr std::size_t kChunk = 64 * kSegment;

  // An entry of a list. Row and value lie together: lists are short pieces when rows go in chunks, and two
  // arrays would miss the cache twice for each piece.
  struct Entry {
    std::uint32_t row;
    float value;
  };

  void plan(std::span<const data::SparseRow> queries, std::size_t first_row, Scratch& scratch) const;
  [[nodiscard]] std::uint32_t entry_from(std::uint32_t feature, std::size_t row) const;
  void add_lists(Scratch& scratch, std::size_t q, std::size_t end, float* sum) const;
  void build_columns(const data::SparseRows& rows, std::span<const std::uint8_t> dense);
  void build_label_rows(const data::LabelSets& sets);
  void build_centroid_norms(const data::SparseRows& rows, host::Compute& compute);

  IndexShape shape_;
  const kernels::Kernels& kernels_;
  std::size_t segments_ = 0;

  std::vector<std::uint32_t> dense_column_;  // per feature: its dense column or kSparse
  std::size_t dense_columns_ = 0;
  AlignedArray<float> dense_;  // [segments_][dense_columns_][kSegment]
  std::vector<std::uint32_t> column_begin_;
  std::vector<Entry> entry_;

  std::vector<std::uint32_t> label_row_begin_;
  std::vector<std::uint32_t> label_row_;
  std::vector<float> inverse_centroid_norm_;  // 0 for a centroid of length 0
};

}  // namespace gossamer::sparse_engine
