// SPDX-License-Identifier: Apache-2.0
#include "learn/data/sampling_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "base/rng.h"

namespace gossamer::data {
namespace {

std::vector<std::uint64_t> epoch_order(const SamplingPlan& plan, std::uint64_t epoch) {
  std::vector<std::uint64_t> order;
  order.reserve(plan.records());
  for (std::uint64_t i = 0; i < plan.records(); ++i) {
    order.push_back(plan.record(SampleId(epoch * plan.records() + i)).value);
  }
  return order;
}

// Every epoch visits every record exactly once, for all small sizes and some larger ones.
TEST(SamplingPlan, EveryEpochIsAPermutation) {
  std::vector<std::uint64_t> sizes = {1023, 1024, 1025, 4095, 65'536, 99'991};
  for (std::uint64_t n = 1; n <= 300; ++n) sizes.push_back(n);
  for (const std::uint64_t n : sizes) {
    const SamplingPlan plan(n + 5, n);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<bool> seen(n, false);
      for (const std::uint64_t record : epoch_order(plan, epoch)) {
        ASSERT_LT(record, n);
        ASSERT_FALSE(seen[record]) << n << " records, epoch " << epoch;
        seen[record] = true;
      }
    }
  }
}

// At sizes that nobody can list, samples stay in range and never meet twice.
TEST(SamplingPlan, LargeSizesDoNotRepeat) {
  for (const std::uint64_t n :
       {(std::uint64_t{1} << 40) - 1, std::uint64_t{1} << 40, std::uint64_t{7'000'000'001}}) {
    const SamplingPlan plan(1, n);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 50'000; ++i) {
      const std::uint64_t record = plan.record(SampleId(3 * n + i * 17)).value;
      ASSERT_LT(record, n);
      ASSERT_TRUE(seen.insert(record).second);
    }
  }
}

// Epochs and seeds give orders of their own, and the same one again when asked again.
TEST(SamplingPlan, EpochsAndSeedsDiffer) {
  const SamplingPlan plan(1, 1000);
  EXPECT_EQ(epoch_order(plan, 0), epoch_order(SamplingPlan(1, 1000), 0));
  EXPECT_NE(epoch_order(plan, 0), epoch_order(plan, 1));
  EXPECT_NE(epoch_order(plan, 0), epoch_order(SamplingPlan(2, 1000), 0));
  EXPECT_EQ(plan.epoch(SampleId(1999)), 1U);
}

// Over many seeds each record is equally likely at each position, and so is each difference of neighbours.
// Chi-square with d degrees of freedom stays below its mean plus 5 standard deviations.
TEST(SamplingPlan, PositionsAreUniform) {
  for (const std::uint64_t n : {5U, 16U, 37U, 64U}) {
    constexpr int kSeeds = 20'000;
    std::vector<double> at_start(n);
    std::vector<double> in_middle(n);
    std::vector<double> step(n);
    for (int seed = 0; seed < kSeeds; ++seed) {
      const SamplingPlan plan(static_cast<std::uint64_t>(seed), n);
      const std::uint64_t first = plan.record(SampleId(0)).value;
      const std::uint64_t middle = plan.record(SampleId(n / 2)).value;
      const std::uint64_t next = plan.record(SampleId(n / 2 + 1)).value;
      ++at_start[first];
      ++in_middle[middle];
      ++step[(next + n - middle) % n];
    }
    const auto chi_square = [](const std::vector<double>& counts, double expected, std::size_t begin) {
      double sum = 0;
      for (std::size_t i = begin; i < counts.size(); ++i) sum += std::pow(counts[i] - expected, 2) / expected;
      return sum;
    };
    const auto limit = [](double degrees) { return degrees + 5 * std::sqrt(2 * degrees); };
    const double cells = static_cast<double>(n);
    EXPECT_LT(chi_square(at_start, kSeeds / cells, 0), limit(cells - 1)) << n;
    EXPECT_LT(chi_square(in_middle, kSeeds / cells, 0), limit(cells - 1)) << n;
    // A step of 0 never happens; all others are equally likely.
    EXPECT_EQ(step[0], 0);
    EXPECT_LT(chi_square(step, kSeeds / (cells - 1), 1), limit(cells - 2)) << n;
  }
}

// In one long epoch neighbours are uncorrelated: the serial correlation of n numbers is within 5 / sqrt(n).
TEST(SamplingPlan, NeighboursAreUncorrelated) {
  constexpr std::uint64_t kRecords = 100'000;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto order = epoch_order(SamplingPlan(seed, kRecords), 0);
    const double mean = (kRecords - 1) / 2.0;
    for (const std::size_t lag : {1U, 2U, 317U}) {
      double covariance = 0;
      double variance = 0;
      for (std::size_t i = 0; i + lag < order.size(); ++i) {
        const double here = static_cast<double>(order[i]) - mean;
        covariance += here * (static_cast<double>(order[i + lag]) - mean);
        variance += here * here;
      }
      EXPECT_LT(std::fabs(covariance / variance), 5 / std::sqrt(kRecords))
          << "seed " << seed << " lag " << lag;
    }
  }
}

}  // namespace
}  // namespace gossamer::data
