// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/row_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace gossamer::sparse {
namespace {

std::size_t shards_of(std::size_t labels, unsigned shift) {
  return (labels + (std::size_t{1} << shift) - 1) >> shift;
}

}  // namespace

unsigned shard_shift(std::size_t labels, std::size_t wished) {
  unsigned shift = kOneShardShift;
  while (shift > kSmallestShardShift && shards_of(labels, shift) < wished) --shift;
  return shift;
}

RowOrder::RowOrder(std::span<const std::uint32_t> label_count, unsigned shift) {
  CHECK(shift <= kOneShardShift, shift);
  const std::size_t labels = label_count.size();
  const std::size_t shards = shards_of(labels, shift);
  if (shards <= 1) return;
  std::vector<std::uint32_t> ranked(labels);
  std::iota(ranked.begin(), ranked.end(), 0U);
  std::ranges::sort(ranked, [&](std::uint32_t a, std::uint32_t b) {
    return label_count[a] != label_count[b] ? label_count[a] > label_count[b] : a < b;
  });
  auto dealt = std::make_shared<Dealt>();
  dealt->row.resize(labels);
  dealt->label.resize(labels);
  // Up to this rank the last shard takes part in the deal.
  const std::size_t last_rows = labels - ((shards - 1) << shift);
  const std::size_t dealt_to_all = shards * last_rows;
  for (std::size_t rank = 0; rank < labels; ++rank) {
    const bool to_all = rank < dealt_to_all;
    const std::size_t takers = to_all ? shards : shards - 1;
    const std::size_t nth = to_all ? rank : rank - dealt_to_all;
    const std::size_t place = (to_all ? 0 : last_rows) + nth / takers;
    const std::size_t row = ((nth % takers) << shift) + place;
    dealt->row[ranked[rank]] = static_cast<std::uint32_t>(row);
    dealt->label[row] = ranked[rank];
  }
  dealt_ = std::move(dealt);
}

}  // namespace gossamer::sparse
