// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace gossamer {
namespace {

// The block function gives the known answers published with the algorithm (Random123, kat_vectors).
TEST(Rng, PhiloxMatchesKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  constexpr std::uint32_t kOnes = 0xffffffffU;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (std::array<std::uint32_t, 4>{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
            (std::array<std::uint32_t, 4>{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

// The same name gives the same stream; any part of the name that differs gives another.
TEST(Rng, StreamsAreNamed) {
  const auto first = [](Rng rng) { return rng.next_u64(); };
  EXPECT_EQ(first(Rng(1, Purpose::kDropout, 5, 6)), first(Rng(1, Purpose::kDropout, 5, 6)));
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t a = 0; a < 8; ++a) {
      for (std::uint32_t b = 0; b < 8; ++b) {
        seen.insert(first(Rng(seed, Purpose::kDropout, a, b)));
        seen.insert(first(Rng(seed, Purpose::kNegatives, a << 32, b)));
      }
    }
  }
  EXPECT_EQ(seen.size(), 8U * 8U * 8U * 2U);
}

// discard(n) goes on as n draws do, wherever in a block the stream stands and ends, and beyond 2^32 blocks.
TEST(Rng, DiscardingEqualsDrawing) {
  for (std::uint64_t before = 0; before < 9; ++before) {
    for (std::uint64_t discarded = 0; discarded < 21; ++discarded) {
      Rng drawing(5, Purpose::kTest, 3, 4);
      Rng skipping = drawing;
      for (std::uint64_t i = 0; i < before + discarded; ++i) (void)drawing.next_u32();
      for (std::uint64_t i = 0; i < before; ++i) (void)skipping.next_u32();
      skipping.discard(discarded);
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(skipping.next_u32(), drawing.next_u32()) << before << " " << discarded;
    }
  }
  Rng at_once(5, Purpose::kTest);
  Rng in_two = at_once;
  at_once.discard(5'000'000'000'007);
  in_two.discard(4'999'999'999'990);
  for (int i = 0; i < 17; ++i) (void)in_two.next_u32();
  EXPECT_EQ(at_once.next_u64(), in_two.next_u64());
}

// Normals behind an even number of discarded ones are those that would have followed them.
TEST(Rng, NormalsCanBeDiscarded) {
  for (const std::uint64_t normals : {0U, 2U, 16U, 22U, 48U}) {
    Rng drawing(5, Purpose::kTest, 3);
    Rng skipping = drawing;
    for (std::uint64_t i = 0; i < normals; ++i) (void)drawing.normal();
    skipping.discard(normals);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(skipping.normal(), drawing.normal()) << normals;
  }
}

// below(n) covers its range evenly: a chi-square statistic with 9 degrees of freedom stays under its 0.001
// tail.
TEST(Rng, BelowIsUniform) {
  Rng rng(7, Purpose::kTest);
  std::vector<int> count(10, 0);
  const int draws = 100000;
  for (int i = 0; i < draws; ++i) ++count[rng.below(10)];
  double chi2 = 0;
  for (const int c : count) chi2 += (c - draws / 10.0) * (c - draws / 10.0) / (draws / 10.0);
  EXPECT_LT(chi2, 27.9);
}

// normal() has mean 0, variance 1 and the normal's fourth moment, within five standard errors.
TEST(Rng, NormalHasItsMoments) {
  Rng rng(3, Purpose::kTest);
  const int draws = 200000;
  double m1 = 0;
  double m2 = 0;
  double m4 = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = rng.normal();
    ASSERT_TRUE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m4 += x * x * x * x;
  }
  EXPECT_NEAR(m1 / draws, 0, 5 * std::sqrt(1.0 / draws));
  EXPECT_NEAR(m2 / draws, 1, 5 * std::sqrt(2.0 / draws));
  EXPECT_NEAR(m4 / draws, 3, 5 * std::sqrt(96.0 / draws));
}

// uniform() stays in [0, 1).
TEST(Rng, UniformStaysInRange) {
  Rng rng(9, Purpose::kTest);
  for (int i = 0; i < 10000; ++i) {
    const float u = rng.uniform();
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
  }
}

}  // namespace
}  // namespace gossamer
