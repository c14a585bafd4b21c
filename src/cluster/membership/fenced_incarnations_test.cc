// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/fenced_incarnations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

using Runs = std::vector<FencedIncarnations::Run>;

// The runs of a plain set of numbers below 64.
Runs runs_of(const std::set<std::uint64_t>& numbers) {
  Runs runs;
  for (const std::uint64_t number : numbers) {
    if (!numbers.contains(number - 1)) runs.push_back({Incarnation(number), Incarnation(number)});
    runs.back().last = Incarnation(number);
  }
  return runs;
}

// Every subset of 0..7, in every order of two halves, gives the members and runs of a plain set. The set made
// anew from its runs is equal.
TEST(FencedIncarnations, EqualsAPlainSetForAllSmallSets) {
  for (std::uint32_t subset = 0; subset < 256; ++subset) {
    for (std::uint32_t first_half = 0; first_half < 256; ++first_half) {
      FencedIncarnations fenced;
      std::set<std::uint64_t> model;
      for (const std::uint32_t part : {subset & first_half, subset}) {
        for (std::uint32_t i = 0; i < 8; ++i) {
          if ((part >> i & 1U) == 0) continue;
          ASSERT_EQ(fenced.fence(Incarnation(i)), model.insert(i).second);
        }
      }
      for (std::uint32_t i = 0; i < 10; ++i) ASSERT_EQ(fenced.contains(Incarnation(i)), model.contains(i));
      const auto runs = fenced.runs();
      ASSERT_EQ(runs, runs_of(model));
      ASSERT_EQ(FencedIncarnations(runs), fenced);
    }
  }
}

// Runs in any order may overlap or touch, also at the ends of the numbers.
TEST(FencedIncarnations, MadeFromAnyRuns) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed, Purpose::kTest);
    Runs runs;
    std::set<std::uint64_t> model;
    for (std::uint64_t i = rng.below(6); i > 0; --i) {
      const std::uint64_t first = rng.below(40);
      const std::uint64_t last = first + rng.below(10);
      runs.push_back({Incarnation(first), Incarnation(last)});
      for (std::uint64_t number = first; number <= last; ++number) model.insert(number);
    }
    EXPECT_EQ(FencedIncarnations(runs).runs(), runs_of(model)) << "seed " << seed;
  }
  FencedIncarnations ends;
  for (const std::uint64_t number : {UINT64_MAX, std::uint64_t{0}, UINT64_MAX - 1})
    ends.fence(Incarnation(number));
  EXPECT_EQ(ends.runs(),
            (Runs{{Incarnation(0), Incarnation(0)}, {Incarnation(UINT64_MAX - 1), Incarnation(UINT64_MAX)}}));
}

// The runs stay few if few incarnations live, whichever of them die: here 100,000 lives of ten peers.
TEST(FencedIncarnations, StaysSmallForever) {
  Rng rng(1, Purpose::kTest);
  FencedIncarnations fenced;
  std::vector<Incarnation> living;
  for (std::uint64_t next = 1; next <= 100'000; ++next) {
    living.emplace_back(next);
    if (living.size() <= 10) continue;
    const std::size_t dies = rng.below(living.size());
    EXPECT_TRUE(fenced.fence(living[dies]));
    living.erase(living.begin() + static_cast<std::ptrdiff_t>(dies));
    if (next % 1000 == 0) {
      ASSERT_LE(fenced.runs().size(), 11U);
    }
  }
  for (const Incarnation alive : living) EXPECT_FALSE(fenced.contains(alive));
}

}  // namespace
}  // namespace gossamer::cluster
