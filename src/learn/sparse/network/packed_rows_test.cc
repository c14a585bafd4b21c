// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/packed_rows.h"

#include <gtest/gtest.h>

namespace gossamer::sparse {
namespace {

// For every choice of five shards, the last one short: the held rows are numbered as they rise, without
// holes.
TEST(PackedRows, NumberHeldRows) {
  constexpr std::size_t kRows = 4 * 8 + 3;
  for (unsigned choice = 0; choice < 32; ++choice) {
    HeldRows held(kRows, 3);
    for (std::size_t shard = 0; shard < 5; ++shard) {
      if ((choice >> shard & 1U) == 0) held.drop(shard);
    }
    const PackedRows packed(held);
    std::uint32_t number = 0;
    for (std::uint32_t row = 0; row < kRows; ++row) {
      if (!held.contains(row)) continue;
      ASSERT_LT(number, packed.size());
      ASSERT_EQ(packed.row(number), row) << choice;
      ASSERT_EQ(packed.number_of(row), number) << choice;
      ++number;
    }
    EXPECT_EQ(packed.size(), number) << choice;
  }
}

}  // namespace
}  // namespace gossamer::sparse
