// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/bucket_block.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/rng.h"

namespace gossamer::lsh {
namespace {

std::vector<std::uint16_t> visited(const BucketBlock& block, std::size_t table, std::uint32_t key) {
  std::vector<std::uint16_t> locals;
  block.visit(table, key, [&](std::size_t local) { locals.push_back(static_cast<std::uint16_t>(local)); });
  return locals;
}

// A visit finds exactly the rows with the key, rising, and decoding gives the keys back. Tried are all splits
// of a key into bucket and tag, blocks of part of the rows, crowded buckets, and reuse for another shape.
TEST(BucketBlock, FindsRowsByKey) {
  Rng rng(1, Purpose::kTest);
  BucketBlock block;
  for (const unsigned bits : {1U, 5U, 9U, 13U, 18U, 20U}) {
    for (const std::size_t rows : {std::size_t{1}, std::size_t{15}, std::size_t{700}, std::size_t{40000}}) {
      const std::size_t distinct = rng.below(2) == 0 ? std::size_t{1} << bits : 5;  // keys in use
      std::vector<std::uint32_t> keys(rows + 3, 12345);
      std::vector<std::uint16_t> locals;
      for (std::size_t local = 0; local < rows; ++local) {
        if (rows < 100 || rng.below(3) > 0) locals.push_back(static_cast<std::uint16_t>(local));
      }
      block.reshape({.tables = 2, .entries = locals.size(), .key_bits = bits});
      for (const std::size_t table : {std::size_t{1}, std::size_t{0}}) {
        std::map<std::uint32_t, std::vector<std::uint16_t>> model;
        const std::uint32_t top = (1U << bits) - 1;
        for (const std::uint16_t local : locals) {
          keys[local] = top - static_cast<std::uint32_t>(rng.below(distinct)) % (top + 1);
          model[keys[local]].push_back(local);
        }
        block.fill(table, locals, keys);
        for (const auto& [key, want] : model)
          ASSERT_EQ(visited(block, table, key), want) << bits << " " << key;
        for (int i = 0; i < 50; ++i) {
          const auto key = static_cast<std::uint32_t>(rng.below(std::size_t{1} << bits));
          EXPECT_EQ(visited(block, table, key).size(), model.contains(key) ? model[key].size() : 0U);
        }
        std::vector<std::uint32_t> decoded(keys.size(), 12345);
        block.decode(table, decoded);
        std::vector<std::uint32_t> want(keys.size(), 12345);
        for (const std::uint16_t local : locals) want[local] = keys[local];
        EXPECT_EQ(decoded, want) << bits << " " << rows;
      }
    }
  }
}

// A full block fits its 16-bit offsets even if all its rows have one key, the last or the first.
TEST(BucketBlock, TakesAllRowsInOneBucket) {
  std::vector<std::uint16_t> locals(kBlockRows);
  for (std::size_t i = 0; i < kBlockRows; ++i) locals[i] = static_cast<std::uint16_t>(i);
  for (const unsigned bits : {4U, 18U}) {
    for (const std::uint32_t key : {0U, (1U << bits) - 1}) {
      BucketBlock block;
      block.reshape({.tables = 1, .entries = kBlockRows, .key_bits = bits});
      block.fill(0, locals, std::vector<std::uint32_t>(kBlockRows, key));
      EXPECT_EQ(visited(block, 0, key), locals);
      EXPECT_TRUE(visited(block, 0, key ^ 1U).empty());
    }
  }
}

// Full blocks take, for a row and table: 2 bytes and an offset's part without tags, 3 bytes and a bit with
// them.
TEST(BucketBlock, TakesTheBytesOfItsFormula) {
  const auto bytes_a_row = [](unsigned bits) {
    BucketBlock block;
    block.reshape({.tables = 10, .entries = kBlockRows, .key_bits = bits});
    return static_cast<double>(block.bytes()) / (10.0 * kBlockRows);
  };
  EXPECT_NEAR(bytes_a_row(9), 2 + 2 * 512 / 65536.0, 1e-3);
  EXPECT_NEAR(bytes_a_row(13), 2.25, 1e-3);
  EXPECT_NEAR(bytes_a_row(18), 3.125, 1e-3);
  EXPECT_NEAR(bytes_a_row(20), 3.125, 1e-3);
}

}  // namespace
}  // namespace gossamer::lsh
