// SPDX-License-Identifier: Apache-2.0
//
// Tables: the L hash tables over the rows of a layer, for sampling negatives and for retrieval (SLIDE's "LSH
// tables": Chen et al., MLSys 2020). Questions are asked through BucketQuery (bucket_query.h).
//
//   Tables tables(family, rows, {});
//   tables.build(view, compute);
//   ... after each update of a row:   tables.note_change(row, length of the move);
//   ... from time to time:            tables.update(view, changed, compute);
//
// update() hashes a row again only if it may have moved farther than its allowance (drift.h). The allowance
// is the family's slack: no shorter move changes a code. It is `tolerance` times the row's length at hashing,
// if that is more.
// Bound: with tolerance 0 the tables equal a fresh build() after every update, whatever happened in between.
// With tolerance T a row that differs lies within T times its hashed length of the vector it was hashed as.
// So the angle between them is at most asin(T) (collisions.md). This holds as long as every change was noted.
//
// Rows that moved to another place stand in a small overlay of their row block and are masked in its base.
// When the overlay holds more than a sixteenth of a block, the block is sorted anew, without hashing. The
// content depends on the rows, the family and the sequence of updates, never on the number of workers.
//
// Memory: see bucket_block.h; 4 bytes a row for the drift, and the overlay. During build() and update() also
// 256 KiB for each table and worker. SimHash with K = 9, L = 50 takes a fifth of the weights at H = 128.
// Owner: the training loop. Thread rule: build() and update() by the owner, with no query at the time;
// note_change() by the row's owner; queries from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "host/api/compute.h"
#include "learn/lsh/bucket_block.h"
#include "learn/lsh/drift.h"
#include "learn/lsh/hash_family.h"

namespace gossamer::lsh {

// A layer's rows, `stride` floats apart; the family's dimension says how many of them count. Or some of its
// rows, in runs of 2^run_shift. Row i then lies in run i >> run_shift of those, which is the layer's run
// number runs[i >> run_shift].
struct RowsView {
  const float* data;
  std::size_t rows;
  std::size_t stride;
  std::span<const std::uint32_t> runs = {};  // empty: all rows
  unsigned run_shift = 0;
  [[nodiscard]] const float* row(std::size_t i) const {
    if (runs.empty()) return data + i * stride;
    const std::size_t in_run = i & ((std::size_t{1} << run_shift) - 1);
    return data + ((std::size_t{runs[i >> run_shift]} << run_shift) + in_run) * stride;
  }
};

struct TablesOptions {
  // Keys are codes of at most this many bits, 1..20; longer codes are folded by a multiplicative hash. Few
  // bits save memory (15 and fewer need no tags in full blocks), many keep unlike rows apart.
  unsigned key_bits = 20;
  // Rows are left alone until they have moved by this share of their length; >= 0.
  double tolerance = 0;
};

struct TablesShape {
  std::size_t rows = 0;
  std::size_t tables = 0;
  unsigned key_bits = 1;
};
// Bytes of such tables at their largest: built, and each row block with as many rows in its overlay as it
// takes.
[[nodiscard]] std::uint64_t most_table_bytes(const TablesShape& shape);

struct UpdateReport {
  std::size_t hashed = 0;         // rows that were due
  std::size_t sorted_blocks = 0;  // overlays that grew too large
};

class Tables {
 public:
  // Empty tables for `rows` rows, 1 <= rows < 2^32. The family must outlive them.
  Tables(const HashFamily& family, std::size_t rows, const TablesOptions& options);

  // Hashes all rows. Requires view.rows == rows().
  void build(const RowsView& view, host::Compute& compute);
  // A row has changed: its new value is at Euclidean distance `length` of the old one, or less. Pass infinity
  // when the distance is not known.
  void note_change(std::size_t row, float length) { drift_.moved(row, length); }
  // Whether the row may have left its bucket (or its tolerance) since it was hashed.
  [[nodiscard]] bool due(std::size_t row) const { return drift_.due(row); }
  // Hashes those rows again that are due among `changed` (any order, repetitions allowed). Requires build().
  UpdateReport update(const RowsView& view, std::span<const std::uint32_t> changed, host::Compute& compute);

  [[nodiscard]] const HashFamily& family() const { return family_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t tables() const { return family_.shape().tables; }
  [[nodiscard]] unsigned key_bits() const { return key_bits_; }
  [[nodiscard]] std::uint32_t key_of(std::uint32_t code) const {
    return folded_ ? (code * 0x9E3779B1U) >> (32 - key_bits_) : code;
  }

  // For queries: the rows with a key in a table, one row block after the other. Within a block they rise in
  // the base, then rise again in the overlay.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  void prefetch_bucket(std::size_t block, std::size_t table, std::uint32_t key) const {
    blocks_[block].base.prefetch_bucket(table, key);
  }
  void prefetch_rows(std::size_t block, std::size_t table, std::uint32_t key) const {
    blocks_[block].base.prefetch_rows(table, key);
  }
  template <class Sink>
  void visit(std::size_t block, std::size_t table, std::uint32_t key, Sink&& sink) const {
    const Block& b = blocks_[block];
    const std::size_t first = block * kBlockRows;
    if (b.moved.empty()) {
      b.base.visit(table, key, [&](std::size_t local) { sink(first + local); });
      return;
    }
    b.base.visit(table, key, [&](std::size_t local) {
      if ((b.masked[local / 64] >> (local % 64) & 1U) == 0) sink(first + local);
    });
    b.overlay.visit(table, key, [&](std::size_t local) { sink(first + local); });
  }

  // All that answers and updates depend on, for another process to continue from: the keys [L][rows], and
  // what is left of the rows' allowances [rows]. Requires key_bits() <= 16.
  void save(std::span<std::uint16_t> keys, std::span<float> allowances) const;
  // Instead of build(): tables of the same shape and family go on as the saved ones would.
  void restore(std::span<const std::uint16_t> keys, std::span<const float> allowances);

  // For tests and inspection: the key of every row in a table. keys has rows() entries.
  void row_keys(std::size_t table, std::span<std::uint32_t> keys) const;
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Block {
    BucketBlock base;                   // all rows of the block
    BucketBlock overlay;                // the moved ones
    std::vector<std::uint16_t> moved;   // local numbers, rising
    std::vector<std::uint64_t> masked;  // a bit for each row: moved
  };
  // Memory that build() and update() borrow.
  struct Work {
    Work(const Tables& tables, int workers);
    AlignedArray<std::uint32_t> keys;  // [L][kBlockRows]: new keys by local number
    std::vector<HashWorkspace> hashing;
    std::vector<AlignedArray<std::uint32_t>> codes;   // [L][kCodeRows]
    std::vector<AlignedArray<std::uint32_t>> before;  // [kBlockRows]: keys so far
    std::vector<std::uint16_t> locals;                // to be hashed, rising
    std::vector<std::uint16_t> moved;                 // the overlay to be
    BucketBlock overlay;
  };

  [[nodiscard]] std::size_t block_rows(std::size_t block) const;
  void hash_locals(const RowsView& view, std::size_t block, Work& work, host::Compute& compute);
  void hash_some(const RowsView& view, std::size_t first, std::span<const std::uint16_t> locals, int worker,
                 Work& work);
  // Returns whether the block was sorted anew.
  bool place_locals(std::size_t block, Work& work, host::Compute& compute);
  void mask(Block& block, std::vector<std::uint16_t>& moved, std::size_t rows);

  const HashFamily& family_;
  std::size_t rows_;
  unsigned key_bits_;
  bool folded_;
  double tolerance_;
  DriftLedger drift_;
  std::vector<std::uint16_t> all_locals_;  // 0, 1, ... : the base of a whole block
  std::vector<Block> blocks_;
};

}  // namespace gossamer::lsh
