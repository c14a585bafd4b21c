// SPDX-License-Identifier: Apache-2.0
#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace gossamer {
namespace {

constexpr int kBytes = 4096;

// A block that was let go is the next one of its size, and none before: two are never the same memory.
TEST(BlockPool, BlocksComeAgain) {
  const BlockPool pool;
  auto first = pool.take(100'000);
  const auto second = pool.take(100'000);
  EXPECT_NE(first, second);
  const void* const memory = first.get();
  first.reset();
  EXPECT_EQ(pool.free_bytes(), 100'000U);
  const auto third = pool.take(100'000);
  EXPECT_EQ(third.get(), memory);
  EXPECT_EQ(pool.free_bytes(), 0U);
}

// What is free never makes it more than was in use at once: new sizes take the place of old ones.
TEST(BlockPool, NewSizesReplaceOldOnes) {
  const BlockPool pool;
  {
    std::vector<std::shared_ptr<std::byte[]>> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(pool.take(1000));
  }
  EXPECT_EQ(pool.free_bytes(), 10'000U);
  const auto other = pool.take(2500);
  EXPECT_EQ(pool.free_bytes(), 7000U);
  const auto large = pool.take(50'000);
  EXPECT_EQ(pool.free_bytes(), 0U);
}

// Blocks may be let go after the pool, and copies of a pool are the same one.
TEST(BlockPool, BlocksOutliveIt) {
  std::optional<BlockPool> pool(std::in_place);
  const BlockPool copy = *pool;
  auto block = pool->take(10);
  pool.reset();
  block.reset();
  EXPECT_EQ(copy.free_bytes(), 10U);
  std::shared_ptr<std::byte[]> last;
  {
    const BlockPool gone;
    last = gone.take(10);
  }
  std::ranges::fill(std::span(last.get(), 10), std::byte{1});
}

// One thread takes while others let go: nobody writes to what another still reads.
TEST(BlockPool, OtherThreadsLetGo) {
  constexpr int kRounds = 3000;
  struct Hand {
    std::shared_ptr<std::byte[]> block;
    std::binary_semaphore empty{1};
    std::binary_semaphore full{0};
  };
  const BlockPool pool;
  std::array<Hand, 3> hands;
  std::vector<std::thread> readers;
  for (Hand& mine : hands) {
    readers.emplace_back([&mine] {
      for (int round = 0; round < kRounds; ++round) {
        mine.full.acquire();
        const auto block = std::move(mine.block);
        mine.empty.release();
        EXPECT_EQ(std::ranges::count(std::span(block.get(), kBytes), block[0]), kBytes);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Hand& reader : hands) {
      auto block = pool.take(kBytes);
      std::ranges::fill(std::span(block.get(), kBytes), std::byte{static_cast<unsigned char>(round)});
      reader.empty.acquire();
      reader.block = std::move(block);
      reader.full.release();
    }
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace gossamer
