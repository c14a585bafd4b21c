// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace gossamer::cluster {
namespace {

// Equal parts are complete and differ by at most one. The larger ones come first.
TEST(Operation, EqualParts) {
  for (std::uint64_t total = 0; total < 20; ++total) {
    for (std::size_t ranks = 1; ranks < 8; ++ranks) {
      const std::vector<std::uint64_t> parts = equal_parts(total, ranks);
      EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), total);
      EXPECT_TRUE(std::ranges::is_sorted(parts, std::greater()));
      EXPECT_LE(parts.front() - parts.back(), 1U);
    }
  }
}

// Claim: parts are cut in pieces: only the last one that is not empty may end within a piece.
TEST(Operation, PartsOfWholePieces) {
  EXPECT_EQ(equal_parts(200, 2, 64), (std::vector<std::uint64_t>{128, 72}));
  EXPECT_EQ(equal_parts(64, 3, 64), (std::vector<std::uint64_t>{64, 0, 0}));
  EXPECT_EQ(equal_parts(130, 4, 64), (std::vector<std::uint64_t>{64, 64, 2, 0}));
  for (std::uint64_t total = 0; total < 1000; total += 7) {
    for (std::size_t ranks = 1; ranks < 8; ++ranks) {
      const std::vector<std::uint64_t> parts = equal_parts(total, ranks, 64);
      EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), total);
      EXPECT_LE(std::ranges::count_if(parts, [](std::uint64_t part) { return part % 64 != 0; }), 1);
      EXPECT_LT(parts.front() - parts.back(), 128U);
    }
  }
}

// An all-reduce goes direct if that sends at most 1 MiB more than two rounds do; two members always do.
TEST(Operation, DirectWhileItCostsLittle) {
  const CollectiveLimits limits;
  EXPECT_TRUE(goes_direct(limits, 1ULL << 40, 2));
  EXPECT_TRUE(goes_direct(limits, 0, 1000));
  for (std::size_t n = 3; n < 100; ++n) {
    const auto extra = [n](std::uint64_t elements) {  // for a node with 1 / n of the tensor
      const double bytes = 4.0 * static_cast<double>(elements);
      const auto nodes = static_cast<double>(n);
      return (nodes - 1) * bytes - 2 * (nodes - 1) / nodes * bytes;
    };
    std::uint64_t most = 0;
    while (goes_direct(limits, 4 * (most + 1), n)) ++most;
    EXPECT_LE(extra(most), 1048576) << n;
    EXPECT_GT(extra(most + 1), 1048576) << n;
  }
  EXPECT_FALSE(goes_direct(limits, 1ULL << 63, 1ULL << 31));
}

// The bytes that may wait for one sum are 64 MiB, as long as each member can have two chunks under way.
TEST(Operation, WindowsBoundWhatWaits) {
  const CollectiveLimits limits;
  EXPECT_EQ(window_chunks(limits, 2), 4U);
  EXPECT_EQ(window_chunks(limits, 17), 4U);
  EXPECT_EQ(window_chunks(limits, 18), 3U);
  EXPECT_EQ(window_chunks(limits, 1000), 2U);
  for (std::size_t n = 2; n <= 33; ++n) {
    EXPECT_LE((n - 1) * window_chunks(limits, n) * limits.chunk_bytes, 64ULL << 20) << n;
  }
}

// All chunks but the last are full, and together they are the stream.
TEST(Operation, StreamsInChunks) {
  for (std::uint64_t bytes = 0; bytes < 40; ++bytes) {
    const StreamShape shape{bytes, 8};
    std::uint64_t sum = 0;
    for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
      EXPECT_TRUE(chunk + 1 == shape.chunks() ? shape.size_of(chunk) >= 1 : shape.size_of(chunk) == 8);
      EXPECT_LE(shape.size_of(chunk), 8U);
      sum += shape.size_of(chunk);
    }
    EXPECT_EQ(sum, bytes);
  }
}

}  // namespace
}  // namespace gossamer::cluster
