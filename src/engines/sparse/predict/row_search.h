// SPDX-License-Identifier: Apache-2.0
//
// RowSearch: for each query of a query block the rows of a matrix with the highest score query . row + bias.
// It is exact: it finds what sorting the scores of all rows finds. A score is Kernels::dot (dot_bf16 for bf16
// rows) plus the bias in f32.
//
// All rows are screened as bytes (byte_vectors.h). The product of bytes, 64 rows at a time with the whole
// query block (kernels/byte_products.h), has an error bound. It tells how high and how low the score of a row
// can be. A row that cannot beat the k-th highest of the lower bounds is out. The scores of the few others
// (about 2 k, or k + 10 for small k) are computed and sorted. Rounding decides only what is computed, not
// what is found. So lists depend neither on workers nor on other queries nor on how a query block is
// processed.
//
// Long rows come first, since a score is at most the product of both lengths plus the bias. Once k scores are
// higher than that for every query of the query block, 64 rows are passed over without a product. (Teflioudi,
// Gemulla and Mykytiuk, "LEMP: Fast retrieval of large entries in a matrix product", SIGMOD 2015, 3.2.)
//
// Thresholds that rise only as rows are seen let thousands of rows through. With enough rows, one in
// kSampleStride goes first, taken evenly from long and short ones. The threshold is then set where the sample
// says that about three times k rows lie above. If fewer than k certainly lie there, the query is screened
// again without a guess. A sample shows that too late once in 10^4 or 10^5 queries.
//
// Borrows matrix, kernels and Compute for its life. Owner: one thread, which also owns the Compute; rows are
// shared out over its workers. Memory: width + 24 bytes a row. For each worker and query there is also a list
// of a few hundred candidates, or more if many rows score alike.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/model/ranking.h"
#include "engines/sparse/predict/byte_vectors.h"
#include "host/api/compute.h"
#include "kernels/byte_products.h"
#include "kernels/kernels.h"

namespace gossamer::sparse_engine {

// The most queries of one search.
inline constexpr std::size_t kQueryBlock = 256;

// The rows: either `weights` or `compact`.
struct RowMatrix {
  std::size_t rows = 0;
  std::size_t width = 0;                   // a multiple of kernels::kLanes, at most 65536
  const float* weights = nullptr;          // rows `stride` apart
  std::size_t stride = 0;                  // >= width
  const kernels::Bf16* compact = nullptr;  // [rows][width]
  const float* bias = nullptr;             // [rows], or null for none
  // Where row i stands in weights or compact, and in bias; borrowed for the search's life. Empty: at i.
  std::span<const std::uint32_t> at = {};
};

struct QueryMatrix {
  const float* values = nullptr;  // [count] rows, `stride` apart
  std::size_t stride = 0;         // >= width
  std::size_t count = 0;          // 1..kQueryBlock
};

class RowSearch {
 public:
  // Rounds the rows to bytes, on all workers.
  RowSearch(const RowMatrix& matrix, const kernels::Kernels& kernels, host::Compute& compute);
  RowSearch(const RowSearch&) = delete;
  RowSearch& operator=(const RowSearch&) = delete;

  // Finds the best min(k, rows) rows of each query. Requires k >= 1. Rows that score NaN or minus infinity
  // are never found. A query with an element that is not finite finds nothing.
  void search(const QueryMatrix& queries, std::size_t k);
  // The rows that the last search found for query q, best first.
  [[nodiscard]] std::span<const Scored> found(std::size_t q) const { return found_[q]; }
  // The fraction of the rows, in 0..1, that the last search multiplied; it passed over the others. If it had
  // to begin again, this is for the second time.
  [[nodiscard]] double screened_share() const;

 private:
  // The bounds of a row. Rows are kept from the longest to the shortest, first the sample, then the others.
  struct ScreenedRow {
    ByteScale bytes;
    float bias;
    std::uint32_t id;
  };
  // No score of the panel's rows is above reach * (length of the query) + bias.
  struct PanelBound {
    float reach;
    float bias;
  };
  // A row that may be among the best k of a query; its score lies in [lower, upper].
  struct Candidate {
    std::uint32_t id;
    float lower;
    float upper;
  };
  struct List {
    std::vector<Candidate> rows;  // all that may be among the best k of the rows seen
    std::size_t limit = 0;        // size at which it is pruned
  };
  struct Worker {
    AlignedArray<std::int16_t> scratch;
    AlignedArray<std::int32_t> products;
    AlignedArray<float> thresholds;  // rows whose upper bound is not above it are out
    std::vector<kernels::ScoreHit> hits;
    std::vector<List> lists;
    std::vector<Candidate> merged;
    std::vector<float> lowers;
    std::size_t needed = 0;    // rows that must be certain to reach a threshold
    std::size_t screened = 0;  // panels, in the last search
  };
  // A query block as bytes. Columns from `count` on belong to no query.
  struct Block {
    std::size_t count = 0;
    std::int32_t zero = 0;
    AlignedArray<std::uint8_t> bytes;  // [kQueryBlock][width]
    AlignedArray<float> scales;
    AlignedArray<float> norms;
    AlignedArray<float> errors;
    std::vector<std::uint8_t> finite;
  };
  // Panels [begin, end).
  struct Panels {
    std::size_t begin;
    std::size_t end;
  };
  static constexpr std::array<std::size_t, 3> kBatches = {32, 64, kQueryBlock};

  void order_rows();
  void round_panel(std::size_t panel, Worker& worker);
  // Row `id` in f32. Compact rows are unpacked into the worker's buffer.
  [[nodiscard]] const float* values(std::uint32_t id, Worker& worker) const;
  void round_queries(const QueryMatrix& queries);
  void clear(Worker& worker) const;
  void multiply(std::size_t batch_size, std::size_t first, Worker& worker) const;
  void screen_rows(std::size_t batch_size, int w);
  void screen_panels(std::size_t batch_size, Panels panels, int w);
  [[nodiscard]] bool begin_again(Worker& worker) const;
  [[nodiscard]] bool may_reach(const PanelBound& bound, const Worker& worker) const;
  void screen_panel(std::size_t batch_size, std::size_t first, Worker& worker) const;
  void raise_threshold(std::size_t q, Worker& worker) const;
  void merge(const QueryMatrix& queries, std::size_t q, std::size_t k, Worker& worker);
  [[nodiscard]] float score(const float* query, std::uint32_t row) const;
  [[nodiscard]] std::size_t at(std::size_t row) const { return matrix_.at.empty() ? row : matrix_.at[row]; }
  [[nodiscard]] float bias(std::size_t row) const {
    return matrix_.bias != nullptr ? matrix_.bias[at(row)] : 0;
  }
  // The most that adding a bias may lose.
  [[nodiscard]] float bias_slack(float added) const { return share_ * std::abs(added) + kUnderflow; }
  static float prune(std::vector<Candidate>& rows, std::size_t k, std::vector<float>& lowers);

  RowMatrix matrix_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  float share_;  // relative error of a score by its roundings (rounding_share)
  std::array<kernels::ByteProducts, kBatches.size()> products_;
  std::array<kernels::ByteProducts::Queries, kBatches.size()> packed_;
  AlignedArray<std::int8_t> bytes_;  // [rows, padded to panels][width], in the order of rows_
  std::vector<ScreenedRow> rows_;
  std::vector<PanelBound> panels_;
  std::size_t sample_panels_;  // the first panels; 0 if rows are few
  Block block_;
  std::size_t k_ = 0;
  std::vector<Worker> workers_;
  std::vector<std::vector<Scored>> found_;
};

}  // namespace gossamer::sparse_engine
