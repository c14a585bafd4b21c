// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace gossamer::sparse {
namespace {

// The tables give base^k to float precision over their whole range, and 0 beyond it.
TEST(PowerTable, IsAPower) {
  for (const double base : {0.9, 0.999, 0.99999, 0.0}) {
    const PowerTable table(base);
    for (const std::uint64_t k : {0U, 1U, 2U, 1023U, 1024U, 1025U, 70000U, 1048575U}) {
      const double want = std::pow(base, static_cast<double>(k));
      EXPECT_NEAR(table.power(k), want, 2e-7 * want + 1e-37) << base << "^" << k;
    }
    EXPECT_EQ(table.power(1U << 20), 0.0F);
  }
}

// Dense Adam in double precision on one weight, with a gradient of 0 in skipped steps. t is as if long
// trained, so that bias corrections do not change.
struct Dense {
  double w = 0.3;
  double m = 0;
  double v = 0;
  void step(double g) {
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 0.01 * m / (std::sqrt(v) + 1e-8);
  }
};

// A row after two updates with `skipped` steps between them, by policy.
struct Row {
  float w;
  float m;
  float v;
};
Row update_twice(SkippedSteps policy, std::uint64_t skipped) {
  const kernels::Kernels& k = kernels::kernels_for(kernels::best_isa());
  RowOptimizer optimizer({.skipped = policy});
  RowTable table({.rows = 2, .width = 3}, Moments::kElement);
  table.weights(1)[2] = 0.3F;
  std::vector<float> gradient(table.stride());
  constexpr std::uint64_t kLate = 2'000'000;
  gradient[2] = 0.5F;
  optimizer.begin_step(StepNumber{kLate}, 0.01F);
  optimizer.update(k, table, 1, gradient.data());
  gradient[2] = -0.2F;
  optimizer.begin_step(StepNumber{kLate + skipped + 1}, 0.01F);
  optimizer.update(k, table, 1, gradient.data());
  EXPECT_EQ(table.last_step(1), kLate + skipped + 2);
  EXPECT_EQ(table.last_step(0), 0U);
  EXPECT_EQ(table.weights(0)[2], 0.0F);
  return {table.weights(1)[2], table.moment1(1)[2], table.moment2(1)[2]};
}

// kDecay gives dense Adam's moments, kDecayAndMove also its weights; kHold behaves as if nothing was skipped.
TEST(RowOptimizer, TreatsSkippedStepsByPolicy) {
  for (const std::uint64_t skipped : {0U, 1U, 5U, 60U, 3000U}) {
    Dense dense;
    dense.step(0.5);
    for (std::uint64_t i = 0; i < skipped; ++i) dense.step(0);
    dense.step(-0.2);
    Dense held;
    held.step(0.5);
    held.step(-0.2);
    const Row hold = update_twice(SkippedSteps::kHold, skipped);
    const Row decay = update_twice(SkippedSteps::kDecay, skipped);
    const Row move = update_twice(SkippedSteps::kDecayAndMove, skipped);
    EXPECT_NEAR(hold.w, held.w, 1e-6);
    EXPECT_NEAR(hold.m, held.m, 1e-6);
    EXPECT_NEAR(hold.v, held.v, 1e-8);
    for (const Row& row : {decay, move}) {
      EXPECT_NEAR(row.m, dense.m, 1e-6) << skipped;
      EXPECT_NEAR(row.v, dense.v, 1e-8) << skipped;
    }
    EXPECT_NEAR(move.w, dense.w, 2e-5) << skipped;
  }
}

// Adam in double where three weights share a second moment: two updates, and `skipped` steps between them
// with gradient 0.
struct Block {
  std::array<double, 3> w = {0.3, 0, -0.1};
  std::array<double, 3> m = {};
  double v = 0;
  void step(const std::array<double, 3>& g) {
    v = 0.999 * v + 0.001 * (g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / 3;
    for (std::size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      w[i] -= 0.01 * m[i] / (std::sqrt(v) + 1e-8);
    }
  }
};

// In a table of Moments::kBlock each moment block of a row follows Adam by itself, also a short one. So it is
// under every policy, to the precision of the first moments. Other rows and the padding stay.
TEST(RowOptimizer, FollowsAdamByBlocks) {
  const kernels::Kernels& k = kernels::kernels_for(kernels::best_isa());
  const std::array<double, 3> first = {0.5, -0.25, 0.125};
  const std::array<double, 3> second = {-0.2, 0.4, 0};
  constexpr std::uint64_t kLate = 2'000'000;
  for (const auto policy : {SkippedSteps::kHold, SkippedSteps::kDecay, SkippedSteps::kDecayAndMove}) {
    for (const std::uint64_t skipped : {0U, 1U, 60U}) {
      Block want;
      want.step(first);
      const auto before = want.w;
      for (std::uint64_t i = 0; policy != SkippedSteps::kHold && i < skipped; ++i) want.step({});
      if (policy == SkippedSteps::kDecay) want.w = before;
      want.step(second);

      RowOptimizer optimizer({.skipped = policy});
      RowTable table({.rows = 2, .width = kernels::kMomentBlock + 3}, Moments::kBlock);
      float* const block = table.weights(1) + kernels::kMomentBlock;
      block[0] = 0.3F;
      block[2] = -0.1F;
      for (const bool late : {false, true}) {
        std::vector<float> gradient(table.stride());
        gradient[0] = 4;
        std::ranges::copy(late ? second : first, gradient.begin() + kernels::kMomentBlock);
        optimizer.begin_step(StepNumber{late ? kLate + skipped + 1 : kLate}, 0.01F);
        optimizer.update(k, table, 1, gradient.data());
      }
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(block[i], want.w[i], 1e-3) << i << skipped;
      EXPECT_NEAR(table.block_moment2(1)[1], want.v, 1e-8) << skipped;
      EXPECT_GT(table.block_moment2(1)[0], 1e-3);
      EXPECT_EQ(block[3], 0.0F);
      EXPECT_EQ(table.weights(0)[0], 0.0F);
      EXPECT_EQ(table.last_step(0), 0U);
    }
  }
}

// A scalar gets what a row of one weight gets.
TEST(RowOptimizer, TreatsScalarsLikeRows) {
  const kernels::Kernels& k = kernels::kernels_for(kernels::best_isa());
  for (const SkippedSteps policy : {SkippedSteps::kHold, SkippedSteps::kDecay, SkippedSteps::kDecayAndMove}) {
    RowOptimizer optimizer({.skipped = policy});
    RowTable table({.rows = 1, .width = 1}, Moments::kElement);
    float w = 0;
    float m = 0;
    float v = 0;
    for (const std::uint64_t t : {0U, 1U, 7U, 8U, 100U}) {
      optimizer.begin_step(StepNumber{t}, 0.01F);
      std::vector<float> gradient(table.stride());
      gradient[0] = 0.3F - 0.1F * static_cast<float>(t % 4);
      const auto c = optimizer.update(k, table, 0, gradient.data());
      optimizer.update_scalar({&w, &m, &v}, gradient[0], c);
      EXPECT_NEAR(w, table.weights(0)[0], 1e-6) << t;
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse
