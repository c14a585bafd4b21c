// SPDX-License-Identifier: Apache-2.0
//
// BucketBlock: the buckets of up to kBlockRows neighbouring rows (a row block), in all tables, as flat CSR.
// For each table it has the rows sorted by bucket, and where each bucket begins. Row numbers and offsets are
// local to the row block and have 16 bits, which halves the memory of plain row ids.
//
// Where there are more keys than half the rows, a key is split. Its low bits choose the bucket; the others
// are a tag of at most 8 bits beside each row. A visitor sees only rows with the right tag. So the number of
// buckets follows the rows while every key stays apart.
//
//   bytes = tables * (entries * (2 + [tagged]) + 2 * (buckets + 1))
//
// Owner: Tables. Thread rule: fill() of different tables may run on different threads; others may read while
// no one fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_array.h"

namespace gossamer::lsh {

// Offsets, up to and including the end, fit 16 bits.
inline constexpr std::size_t kBlockRows = 65535;
inline constexpr unsigned kMaxTagBits = 8;

struct BlockShape {
  std::size_t tables = 0;
  std::size_t entries = 0;  // <= kBlockRows
  unsigned key_bits = 1;    // keys are below 2^key_bits
};

class BucketBlock {
 public:
  // Takes another shape; fill() must follow for every table. Keeps memory for reuse.
  void reshape(const BlockShape& shape);

  // Sorts the rows into the buckets of a table: row `local` has key keys[local]. Requires locals.size() ==
  // entries, rising.
  void fill(std::size_t table, std::span<const std::uint16_t> locals, std::span<const std::uint32_t> keys);
  // The inverse: keys[local] = key, for the rows that are here; leaves others alone.
  void decode(std::size_t table, std::span<std::uint32_t> keys) const;

  // Calls sink(local) for the rows with this key, rising.
  template <class Sink>
  void visit(std::size_t table, std::uint32_t key, Sink&& sink) const {
    const std::size_t begin = begin_[place(table, key)];
    const std::size_t end = begin_[place(table, key) + 1];
    const std::size_t first = table * shape_.entries;
    if (!tagged_) {
      for (std::size_t i = begin; i < end; ++i) sink(local_[first + i]);
      return;
    }
    const std::uint32_t tag = key >> bucket_bits_;
    for (std::size_t i = begin; i < end; ++i) {
      if (tag_[first + i] == tag) sink(local_[first + i]);
    }
  }
  // The first fetches what visit() needs first; the second, once that has come, what it needs next.
  void prefetch_bucket(std::size_t table, std::uint32_t key) const {
    __builtin_prefetch(&begin_[place(table, key)]);
  }
  void prefetch_rows(std::size_t table, std::uint32_t key) const {
    const std::size_t at = table * shape_.entries + begin_[place(table, key)];
    __builtin_prefetch(local_.data() + at);
    if (tagged_) __builtin_prefetch(tag_.data() + at);
  }

  [[nodiscard]] std::size_t entries() const { return shape_.entries; }
  // Bytes in use.
  [[nodiscard]] std::uint64_t bytes() const;
  // Bytes that a new block of this shape uses.
  [[nodiscard]] static std::uint64_t bytes_of(const BlockShape& shape);

 private:
  [[nodiscard]] std::size_t buckets() const { return std::size_t{1} << bucket_bits_; }
  [[nodiscard]] std::size_t place(std::size_t table, std::uint32_t key) const {
    return table * (buckets() + 1) + (key & (buckets() - 1));
  }

  BlockShape shape_;
  unsigned bucket_bits_ = 0;
  bool tagged_ = false;
  AlignedArray<std::uint16_t> begin_;  // [tables][buckets + 1]
  AlignedArray<std::uint16_t> local_;  // [tables][entries]
  AlignedArray<std::uint8_t> tag_;     // beside local_ if tagged_
};

}  // namespace gossamer::lsh
