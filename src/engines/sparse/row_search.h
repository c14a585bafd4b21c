// SPDX-License-Identifier: Apache-2.0
//
// RowSearch: for each query of a block the rows of a matrix with the highest score query . row + bias. Exact:
// what it finds is what sorting the scores of all rows finds, where a score is Kernels::dot (of bf16 rows:
// dot_bf16) plus the bias in f32.
//
// All rows are screened as bytes (byte_vectors.h): the product of bytes, 64 rows at a time with the whole
// block (kernels/byte_products.h), with its error bound says how high and how low the score of a row can be.
// A row that cannot beat the k-th highest of the lower bounds is out; the scores of the few others (about 2
// k, or k + 10 for small k) are computed and sorted. Since rounding decides only what is computed, not what
// is found, lists depend neither on workers nor on other queries nor on how a block is worked off.
//
// Long rows come first, since a score is at most the product of both lengths plus the bias: once k scores are
// higher than that for every query of the block, 64 rows are passed over without a product (Teflioudi,
// Gemulla and Mykytiuk, "LEMP: Fast retrieval of large entries in a matrix product", SIGMOD 2015, 3.2).
//
// Thresholds that rise only as rows are seen let thousands of rows through. Where there are rows enough, one
// in kSampleStride goes first, taken evenly from long and short ones, and the threshold is then set where the
// sample says that some three times k rows lie above. Should fewer than k certainly lie there, which a sample
// shows too late once in 10^4 or 10^5 queries, the query is screened again without a guess.
//
// Borrows matrix, kernels and Compute for its life. Owner: one thread, which also owns the Compute; rows are
// shared out over its workers. Memory: width + 24 bytes a row; for each worker and query a list of some
// hundred candidates, of more where many rows score alike.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "engines/sparse/byte_vectors.h"
#include "engines/sparse/ranking.h"
#include "host/api/compute.h"
#include "kernels/byte_products.h"
#include "kernels/kernels.h"

namespace gossamer::engine {

// Queries that one search may take.
inline constexpr std::size_t kQueryBlock = 256;

// The rows: either `weights` or `compact`.
struct RowMatrix {
  std::size_t rows = 0;
  std::size_t width = 0;                   // a multiple of kernels::kLanes, at most 65536
  const float* weights = nullptr;          // rows `stride` apart
  std::size_t stride = 0;                  // >= width
  const kernels::Bf16* compact = nullptr;  // [rows][width]
  const float* bias = nullptr;             // [rows], or null for none
  // Where row i of them stands in weights or compact, and in bias; borrowed for the search's life. Empty: at
  // i.
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
  // are never found; a query with an element that is not finite finds nothing.
  void search(const QueryMatrix& queries, std::size_t k);
  // What the last search found for query q, best first.
  [[nodiscard]] std::span<const Scored> found(std::size_t q) const { return found_[q]; }
  // The share of the rows, in 0..1, that the last search multiplied (where it had to begin again: the second
  // time); it passed over the others.
  [[nodiscard]] double screened_share() const;

 private:
  // What is known of a row; rows are kept from the longest to the shortest, first the sample, then the
  // others.
  struct ScreenedRow {
    ByteScale bytes;
    float bias;
    std::uint32_t id;
  };
  // No score of its rows is above reach * (length of the query) + bias.
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
    std::vector<Candidate> rows;  // all that may be among the best k of those seen
    std::size_t limit = 0;        // of its size, when it is to be pruned
  };
  struct Worker {
    AlignedArray<std::int16_t> scratch;
    AlignedArray<std::int32_t> products;
    AlignedArray<float> thresholds;  // a row whose upper bound is not above is out
    std::vector<kernels::ScoreHit> hits;
    std::vector<List> lists;
    std::vector<Candidate> merged;
    std::vector<float> lowers;
    std::size_t needed = 0;    // rows that have to be certain to reach a threshold
    std::size_t screened = 0;  // panels of the last search
  };
  // A block of queries as bytes; columns from `count` on belong to no query.
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
  // Row `id` in f32; the compact ones are unpacked into the worker's buffer.
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
  // What adding a bias may lose.
  [[nodiscard]] float bias_slack(float added) const { return share_ * std::abs(added) + kUnderflow; }
  static float prune(std::vector<Candidate>& rows, std::size_t k, std::vector<float>& lowers);

  RowMatrix matrix_;
  const kernels::Kernels& kernels_;
  host::Compute& compute_;
  float share_;  // of a score that its roundings may take (rounding_share)
  std::array<kernels::ByteProducts, kBatches.size()> products_;
  std::array<kernels::ByteProducts::Queries, kBatches.size()> packed_;
  AlignedArray<std::int8_t> bytes_;  // [rows, padded to panels][width], in the order of rows_
  std::vector<ScreenedRow> rows_;
  std::vector<PanelBound> panels_;
  std::size_t sample_panels_;  // the first ones; 0 where rows are few
  Block block_;
  std::size_t k_ = 0;
  std::vector<Worker> workers_;
  std::vector<std::vector<Scored>> found_;
};

}  // namespace gossamer::engine
