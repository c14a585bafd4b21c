// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/network/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/rng.h"

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

// Gradients of one row, by the update.
using Draw = std::function<float(std::uint64_t update)>;

// Updates one row of 20 columns with drawn gradients, and with drawn gaps between the updates. Checks the
// bound after each. Returns the largest m^2 / v that it saw.
struct Updates {
  std::uint64_t gaps = 0;  // between two of them: below
  std::uint64_t updates = 300;
};
double expect_bounded(const OptimizerOptions& options, kernels::Isa isa, Moments kind, const Draw& draw,
                      const Updates& wanted) {
  const kernels::Kernels& k = kernels::kernels_for(isa);
  RowOptimizer optimizer(options);
  RowTable table({.rows = 1, .width = 20}, kind);
  std::vector<float> gradient(table.stride());
  float bias = 0;
  float bias_m = 0;
  float bias_v = 0;
  const std::uint64_t gaps = wanted.gaps;
  Rng rng(gaps, Purpose::kTest);
  double most = 0;
  StepNumber step{0};
  for (std::uint64_t update = 0; update < wanted.updates; ++update) {
    step.value += 1 + (gaps > 0 ? rng.below(gaps) : 0);
    for (std::size_t i = 0; i < 20; ++i) gradient[i] = draw(update);
    optimizer.begin_step(step, 0.01F);
    const auto c = optimizer.update(k, table, 0, gradient.data());
    optimizer.update_scalar({.w = &bias, .m = &bias_m, .v = &bias_v}, gradient[0], c);
    const MomentBound bound(options, kind, update + 1);
    const MomentBound scalar(options, Moments::kElement, update + 1);
    EXPECT_TRUE(scalar.possible(bias_m, bias_v)) << bias_m << " " << bias_v << " after " << update;
    bool all = true;
    for (std::size_t i = 0; i < 20; ++i) {
      const bool block = kind == Moments::kBlock;
      const float m = block ? std::bit_cast<float>(std::uint32_t{table.block_moment1(0)[i].bits} << 16)
                            : table.moment1(0)[i];
      const float v = block ? table.block_moment2(0)[i / kernels::kMomentBlock] : table.moment2(0)[i];
      all = all && bound.possible(m, v);
      if (v > 0x1p-100F) most = std::max(most, double{m} * m / v);
    }
    EXPECT_TRUE(all) << "update " << update << ", gaps " << gaps;
    if (!all) break;
  }
  return most;
}

// Claim: moments that the optimizer has made are within the bound, with every policy, kind and instruction
// set, whatever the gradients were: tiny ones, whose squares vanish, huge ones, and rare ones among zeros.
// So it is where the first moment decays nearly as slowly as the square root of the second.
TEST(MomentBound, HoldsForAllGradients) {
  struct Decays {
    double beta1;
    double beta2;
  };
  Rng rng(7, Purpose::kTest);
  const auto magnitude = [&rng](int low, int high) {
    const auto sign = rng.below(2) == 0 ? 1.0F : -1.0F;
    const auto exponent = low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low)));
    return std::ldexp(sign * (1 + rng.uniform()), exponent);
  };
  const std::vector<Draw> draws = {
      [&](std::uint64_t) { return magnitude(-4, 4); },
      [&](std::uint64_t) { return magnitude(-149, -60); },
      [&](std::uint64_t) { return magnitude(-75, -60); },
      [&](std::uint64_t) { return magnitude(40, 126); },
      [&](std::uint64_t) { return magnitude(-149, 60); },
      [&](std::uint64_t update) { return update % 50 == 0 ? magnitude(-10, 60) : 0.0F; },
      [&](std::uint64_t update) { return update == 0 ? 0x1p60F : 0.0F; },
      [&](std::uint64_t update) { return std::pow(0.9F, static_cast<float>(300 - update)); }};
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    for (const Decays& decays : {Decays{0.9, 0.999},
                                 {0, 0.9},
                                 {0.9, 0.82},
                                 {0.99, 0.9802},
                                 {0.9999, 0.999999},
                                 {0.5, 0.999999},
                                 {0.9999, 0.99980002},
                                 {0.8, 0.95}}) {
      for (const auto skipped : {SkippedSteps::kHold, SkippedSteps::kDecay, SkippedSteps::kDecayAndMove}) {
        for (const Moments kind : {Moments::kElement, Moments::kBlock}) {
          for (const std::uint64_t gaps : {0U, 5U, 900U}) {
            SCOPED_TRACE(::testing::Message() << decays.beta1 << " " << decays.beta2);
            const OptimizerOptions options{.beta1 = decays.beta1, .beta2 = decays.beta2, .skipped = skipped};
            for (const Draw& draw : draws) (void)expect_bounded(options, isa, kind, draw, {.gaps = gaps});
          }
        }
      }
    }
  }
}

// Claim: decays are used as floats, which may be as far from the numbers of the options as half a float.
// After two million updates the moments are within the bound all the same.
TEST(MomentBound, HasRoomForRounding) {
  constexpr float kBeta1 = 1 - 16 * 0x1p-24F;
  constexpr float kBeta2 = 1 - 33 * 0x1p-24F;
  constexpr std::uint64_t kUpdates = std::uint64_t{1} << 21;
  const OptimizerOptions options{.beta1 = kBeta1 - 0.49 * 0x1p-24, .beta2 = kBeta2 + 0.49 * 0x1p-24};
  RowOptimizer optimizer(options);
  optimizer.begin_step(StepNumber{9}, 0.01F);
  RowTable table({.rows = 1, .width = 16}, Moments::kElement);
  const std::vector<float> none(table.stride());
  const auto c = optimizer.update(kernels::kernels_for(kernels::best_isa()), table, 0, none.data());
  float bias = 0;
  float m = 0;
  float v = 0;
  double gradient = 1;
  for (std::uint64_t update = 0; update < kUpdates; ++update) {
    optimizer.update_scalar({.w = &bias, .m = &m, .v = &v}, static_cast<float>(gradient), c);
    gradient *= double{kBeta2} / double{kBeta1};
  }
  EXPECT_TRUE(MomentBound(options, Moments::kElement, kUpdates).possible(m, v)) << m << " " << v;
}

// Claim: a first moment of a block may stay as it is, because bf16 rounds it back, while the second moment
// decays. Such moments are possible.
TEST(MomentBound, HasRoomForHalves) {
  const OptimizerOptions options{.beta1 = 0.997, .beta2 = 0.9941};
  const auto once = [](std::uint64_t update) { return update == 0 ? 333.0F : 0.0F; };
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    EXPECT_GT(expect_bounded(options, isa, Moments::kBlock, once, {.updates = 2500}), 100);
  }
}

// Claim: where m decays by rounding as slowly as the square root of v, the bound grows with each update.
TEST(MomentBound, GrowsWhereNothingDecays) {
  const double rounded = 0.81 * (1 + 0x1p-20) * (1 + 0x1p-20) / (1 - 0x1p-20);
  double beta2 = rounded;
  for (int i = 0; i < 100; ++i) beta2 = std::nextafter(beta2, 0);
  for (int i = 0; i < 200; ++i) {
    const MomentBound bound({.beta1 = 0.9, .beta2 = beta2}, Moments::kElement, 300);
    EXPECT_TRUE(bound.possible(3.9, 1)) << i;
    EXPECT_FALSE(bound.possible(4.2, 1)) << i;
    beta2 = std::nextafter(beta2, 1);
  }
}

// Claim: the bound is no wider than it must be. Gradients that grow as beta1 / beta2 with each update come
// within a few percent of it. In a block, a column whose neighbours have none does. A first moment of 2^60
// beside a second one of 0 is not possible, nor one that is a few times too large.
TEST(MomentBound, IsTight) {
  const OptimizerOptions options;
  const auto grows = [](std::uint64_t update) {
    return static_cast<float>(std::pow(0.999 / 0.9, static_cast<double>(update) - 150));
  };
  const MomentBound bound(options, Moments::kElement, 300);
  const double most = expect_bounded(options, kernels::best_isa(), Moments::kElement, grows, {});
  EXPECT_FALSE(bound.possible(std::sqrt(most * 1.1), 1));
  EXPECT_FALSE(bound.possible(0x1p60, 0));
  EXPECT_FALSE(bound.possible(1e-12, 0));
  EXPECT_TRUE(bound.possible(0, 0));
  EXPECT_FALSE(bound.possible(std::nan(""), 1));
  const MomentBound block(options, Moments::kBlock, 300);
  EXPECT_TRUE(block.possible(std::sqrt(16 * most), 1));
  EXPECT_FALSE(block.possible(std::sqrt(16 * most * 1.2), 1));
  EXPECT_FALSE(block.possible(0x1p60, 0));
}

// Claim: an update of moments within the bound gives moments within it. So a member that has taken such
// moments from another one can give its own.
TEST(MomentBound, IsKeptByUpdates) {
  const OptimizerOptions options;
  const kernels::Kernels& k = kernels::kernels_for(kernels::best_isa());
  Rng rng(11, Purpose::kTest);
  for (int row = 0; row < 200; ++row) {
    RowOptimizer optimizer(options);
    RowTable table({.rows = 1, .width = 16}, Moments::kElement);
    const MomentBound bound(options, Moments::kElement, 1'000'000);
    const float v = std::ldexp(1.0F, static_cast<int>(rng.below(120)) - 100);
    float most = 0;
    for (float m = std::sqrt(v); bound.possible(m, v); m *= 1.001F) most = m;
    for (std::size_t i = 0; i < 16; ++i) table.moment1(0)[i] = most;
    for (std::size_t i = 0; i < 16; ++i) table.moment2(0)[i] = v;
    for (std::uint64_t step = 500'000; step < 500'100; ++step) {
      // The gradient that takes m farthest from the square root of v.
      std::vector<float> gradient(table.stride());
      const float worst = table.moment2(0)[0] / table.moment1(0)[0];
      for (std::size_t i = 0; i < 16; ++i) gradient[i] = worst * static_cast<float>(i);
      optimizer.begin_step(StepNumber{step}, 0.01F);
      optimizer.update(k, table, 0, gradient.data());
      bool all = true;
      for (std::size_t i = 0; i < 16; ++i)
        all = all && bound.possible(table.moment1(0)[i], table.moment2(0)[i]);
      ASSERT_TRUE(all) << row << " " << step;
    }
  }
}

}  // namespace
}  // namespace gossamer::sparse
