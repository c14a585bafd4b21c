// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/bucket_block.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace gossamer::lsh {
namespace {

// The number of key bits that choose a bucket. Without tags an offset may cost as much as a tag would: two
// bytes for every two rows. With tags, about 16 rows share an offset, which makes it one bit a row.
unsigned bucket_bits(const BlockShape& shape) {
  if ((std::size_t{1} << shape.key_bits) <= (shape.entries + 1) / 2) return shape.key_bits;
  const auto wanted = static_cast<unsigned>(std::bit_width(shape.entries / 16));
  const unsigned least = shape.key_bits > kMaxTagBits ? shape.key_bits - kMaxTagBits : 0;
  return std::min(shape.key_bits, std::max(wanted, least));
}

template <class T>
void make_room(AlignedArray<T>& array, std::size_t size) {
  if (array.size() < size) array = AlignedArray<T>(size);
}

}  // namespace

void BucketBlock::reshape(const BlockShape& shape) {
  CHECK(shape.entries <= kBlockRows, shape.entries);
  CHECK(shape.key_bits >= 1 && shape.key_bits <= 20, shape.key_bits);
  shape_ = shape;
  bucket_bits_ = bucket_bits(shape);
  tagged_ = shape.key_bits > bucket_bits_;
  make_room(begin_, shape.tables * (buckets() + 1));
  make_room(local_, shape.tables * shape.entries);
  if (tagged_) make_room(tag_, shape.tables * shape.entries);
}

void BucketBlock::fill(std::size_t table, std::span<const std::uint16_t> locals,
                       std::span<const std::uint32_t> keys) {
  CHECK(locals.size() == shape_.entries, locals.size(), shape_.entries);
  const auto begin = begin_.span().subspan(table * (buckets() + 1), buckets() + 1);
  const auto mask = static_cast<std::uint32_t>(buckets() - 1);
  std::ranges::fill(begin, std::uint16_t{0});
  for (const std::uint16_t local : locals) ++begin[(keys[local] & mask) + 1];
  for (std::size_t b = 1; b < begin.size(); ++b)
    begin[b] = static_cast<std::uint16_t>(begin[b] + begin[b - 1]);
  const std::size_t first = table * shape_.entries;
  for (const std::uint16_t local : locals) {
    const std::uint32_t key = keys[local];
    const std::size_t at = first + begin[key & mask]++;
    local_[at] = local;
    if (tagged_) tag_[at] = static_cast<std::uint8_t>(key >> bucket_bits_);
  }
  // Each begin has moved to the next bucket's.
  std::copy_backward(begin.begin(), begin.end() - 1, begin.end());
  begin[0] = 0;
}

void BucketBlock::decode(std::size_t table, std::span<std::uint32_t> keys) const {
  const std::uint16_t* begin = begin_.data() + table * (buckets() + 1);
  const std::size_t first = table * shape_.entries;
  for (std::uint32_t b = 0; b < buckets() && shape_.entries > 0; ++b) {
    for (std::size_t i = first + begin[b]; i < first + begin[b + 1]; ++i) {
      keys[local_[i]] = !tagged_ ? b : b | (std::uint32_t{tag_[i]} << bucket_bits_);
    }
  }
}

std::uint64_t BucketBlock::bytes() const {
  return sizeof(std::uint16_t) * (begin_.size() + local_.size()) + tag_.size();
}

std::uint64_t BucketBlock::bytes_of(const BlockShape& shape) {
  const unsigned bits = bucket_bits(shape);
  const std::uint64_t offsets = (std::uint64_t{1} << bits) + 1;
  const std::uint64_t entry = sizeof(std::uint16_t) + (shape.key_bits > bits ? sizeof(std::uint8_t) : 0);
  return shape.tables * (offsets * sizeof(std::uint16_t) + shape.entries * entry);
}

}  // namespace gossamer::lsh
