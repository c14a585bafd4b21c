// SPDX-License-Identifier: Apache-2.0
//
// BucketQuery: asks Tables for the rows that are likely near a vector. Candidates are the rows of the
// vector's bucket in each table; each is counted by the tables that support it. The best supported come
// first, equal ones by row number (SLIDE's "TopK" policy; with min_tables its "hard thresholding"). The same
// tables and vector give the same answer.
//
// Cost: one visit for each row in the L buckets, and one look at the groups of 64 rows that were touched.
// Memory: 2 bytes a row, 4 more where buckets are capped or sampled. Allocates nothing after construction.
// Owner: one thread. Thread rule: one owner; several queries may read the same tables; results are views
// until the next question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "learn/data/rows.h"
#include "learn/lsh/tables.h"

namespace gossamer::lsh {

// The rows of a bucket that a query sees when there are more than `cap_rows`. SLIDE stores no more than 128
// rows in a bucket and throws the others away when they are inserted. Here all rows are stored, and the
// choice is made when a bucket is read, so that it stays right after any update.
enum class BucketCap {
  kNone,       // all
  kFifo,       // the last `cap_rows` by number, which is the order of insertion (SLIDE's experiments)
  kReservoir,  // `cap_rows` of them at random, uniform, by (seed, table, key): what reservoir sampling keeps
};

struct BucketQueryOptions {
  std::size_t limit = 1000;    // candidates of an answer, at most; >= 1
  std::size_t min_tables = 1;  // support that a candidate needs; >= 1
  BucketCap cap = BucketCap::kNone;
  std::size_t cap_rows = 128;  // >= 1
  std::uint64_t seed = 0;      // for kReservoir
};

struct Candidate {
  std::uint32_t row;
  std::uint32_t tables;  // that support it, 1..L
  bool operator==(const Candidate&) const = default;
};

class BucketQuery {
 public:
  // The tables must outlive the query. Requires L < 65536.
  BucketQuery(const Tables& tables, const BucketQueryOptions& options);

  // The candidates of one dense vector with the family's dimension, of one sparse vector, or of one vector
  // with known codes [L]. (HashFamily::hash_block hashes a batch faster.)
  [[nodiscard]] std::span<const Candidate> find(std::span<const float> vector);
  [[nodiscard]] std::span<const Candidate> find(const data::SparseRow& vector);
  [[nodiscard]] std::span<const Candidate> find_codes(std::span<const std::uint32_t> codes);

  // SLIDE's "vanilla" policy: reads the buckets that belong to these codes, table after table, until `limit`
  // different rows are found. `order` draws the order of the tables. Rows come in the order in which they are
  // found. min_tables does not matter. Cost: the buckets that it reads.
  [[nodiscard]] std::span<const Candidate> sample_codes(std::span<const std::uint32_t> codes, Rng& order);

  // Rows visited by the last find, with repetitions.
  [[nodiscard]] std::size_t visited() const;

 private:
  void visit_all();
  void visit_capped();
  [[nodiscard]] std::span<const std::uint32_t> capped(std::size_t table);
  void rank_group(std::size_t group, std::size_t least);
  [[nodiscard]] std::span<const Candidate> ranked();

  static constexpr std::size_t kGroup = 64;

  const Tables& tables_;
  BucketQueryOptions options_;
  HashWorkspace hashing_;
  std::vector<std::uint32_t> codes_;
  std::vector<std::uint32_t> keys_;
  AlignedArray<std::uint16_t> count_;   // [rows, padded to whole groups]: support, 0 between questions
  AlignedArray<std::uint8_t> touched_;  // [groups, padded to 8]: whether a count is not 0
  AlignedArray<std::uint32_t> bucket_;  // [rows]: the rows of one bucket
  std::vector<std::uint32_t> with_;     // [L + 2]: rows supported by at least so many tables
  std::vector<std::uint32_t> next_;     // [L + 1]: where the next row of this support goes
  std::vector<std::uint32_t> order_;    // [L]
  std::vector<Candidate> out_;
};

}  // namespace gossamer::lsh
