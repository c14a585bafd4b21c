// SPDX-License-Identifier: Apache-2.0
//
// What optimizers do to a row: every table that this CPU runs, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kUpdateInputs{.seed = 4713};

// Around the widths of all vectors and of unrolled loops.
const std::vector<std::size_t> kUpdateSizes = {16, 32, 48, 112, 128, 144, 1024};

class UpdatesOnIsa : public OnIsa {};

struct AdamState {
  double w, m, v;
};
// Algorithm 1 in double, with the movement of skipped steps first; `square` is what the second moment
// follows.
AdamState adam_in_double(AdamState s, double gradient, double square, const AdamCoefficients& c) {
  const double scale = wide(c.gradient_scale);
  s.w -= wide(c.skipped_move) * s.m / (std::sqrt(s.v) * wide(c.inv_sqrt_bias2) + wide(c.epsilon));
  s.m = wide(c.beta1) * wide(c.decay1) * s.m + wide(c.one_minus_beta1) * gradient * scale;
  s.v = wide(c.beta2) * wide(c.decay2) * s.v + wide(c.one_minus_beta2) * square * scale * scale;
  const double move = wide(c.step_size) * s.m / (std::sqrt(s.v) * wide(c.inv_sqrt_bias2) + wide(c.epsilon));
  s.w = wide(c.weight_scale) * s.w - move;
  return s;
}

// adam_row is Adam's algorithm in double to 1e-5, with and without skipped steps; untouched rows (all zero)
// stay.
TEST_P(UpdatesOnIsa, AdamRow) {
  const AdamCoefficients plain = {.step_size = 0.02F, .inv_sqrt_bias2 = 1.7F};
  const AdamCoefficients skipping = {.step_size = 0.02F,
                                     .inv_sqrt_bias2 = 1.7F,
                                     .gradient_scale = 1.0F / 256,
                                     .weight_scale = 0.999F,
                                     .decay1 = 0.5F,
                                     .decay2 = 0.98F,
                                     .skipped_move = 0.03F};
  for (const AdamCoefficients& c : {plain, skipping}) {
    for (const std::size_t n : kUpdateSizes) {
      std::vector<float> w = kUpdateInputs.row(n, 1);
      std::vector<float> m = kUpdateInputs.row(n, 2);
      std::vector<float> v = kUpdateInputs.row(n, 3);
      const std::vector<float> g = kUpdateInputs.row(n, 4);
      for (float& x : v) x = x * x;
      m[5] = v[5] = 0;  // a fresh element
      const std::vector<float> w0 = w;
      const std::vector<float> m0 = m;
      const std::vector<float> v0 = v;
      kernels().adam_row({w.data(), m.data(), v.data(), g.data(), n}, c);
      for (std::size_t i = 0; i < n; ++i) {
        const double gradient = wide(g[i]);
        const AdamState s =
            adam_in_double({wide(w0[i]), wide(m0[i]), wide(v0[i])}, gradient, gradient * gradient, c);
        ASSERT_NEAR(m[i], s.m, 1e-6) << i;
        ASSERT_NEAR(v[i], s.v, 1e-6 * (1 + s.v)) << i;
        ASSERT_NEAR(w[i], s.w, 1e-5 * (1 + std::abs(s.w))) << i << " seed " << kUpdateInputs.seed;
      }
      std::vector<float> zero(n, 0.0F);
      std::vector<float> zero_m = zero;
      std::vector<float> zero_v = zero;
      kernels().adam_row({zero.data(), zero_m.data(), zero_v.data(), std::vector<float>(n).data(), n}, c);
      EXPECT_EQ(zero, std::vector<float>(n, 0.0F));
    }
  }
}

// The mean of the squares of moment block `block` over its elements below `width`; 0 where there are none.
double mean_square(const std::vector<float>& g, std::size_t block, std::size_t width) {
  double sum = 0;
  std::size_t used = 0;
  for (std::size_t i = block * kMomentBlock; i < std::min(width, (block + 1) * kMomentBlock); ++i, ++used) {
    sum += wide(g[i]) * wide(g[i]);
  }
  return used == 0 ? 0 : sum / static_cast<double>(used);
}

// adam_blocks follows Adam's algorithm in double to 1e-6, with the mean of a moment block's squared gradients
// in place of each square. m is stored to the nearest bf16, and the step takes it as it was before that. The
// last moment block in use may be short, and blocks of padding may follow.
TEST_P(UpdatesOnIsa, AdamBlocks) {
  const AdamCoefficients plain = {.step_size = 0.02F, .inv_sqrt_bias2 = 1.25F};
  AdamCoefficients skipping = plain;
  skipping.decay1 = 0.5F;
  skipping.decay2 = 0.75F;
  skipping.skipped_move = 0.03F;
  for (const AdamCoefficients& c : {plain, skipping}) {
    for (const std::size_t n : kUpdateSizes) {
      for (const std::size_t width : {n, n - 5, n / 2 + 3}) {
        std::vector<float> w = kUpdateInputs.row(n, 1);
        std::vector<float> g = kUpdateInputs.row(n, 2);
        std::fill(g.begin() + static_cast<std::ptrdiff_t>(width), g.end(), 0.0F);
        const std::vector<float> w0 = w;
        std::vector<Bf16> m(n);
        std::ranges::transform(kUpdateInputs.row(n, 3), m.begin(), reference::to_bf16);
        const std::vector<Bf16> m0 = m;
        std::vector<float> v = kUpdateInputs.row(n / kMomentBlock, 4);
        for (float& x : v) x = x * x;
        const std::vector<float> v0 = v;
        kernels().adam_blocks({w.data(), m.data(), v.data(), g.data(), n, width}, c);
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t block = i / kMomentBlock;
          const AdamState before = {wide(w0[i]), wide(reference::from_bf16(m0[i])), wide(v0[block])};
          const AdamState s = adam_in_double(before, wide(g[i]), mean_square(g, block, width), c);
          ASSERT_NEAR(reference::from_bf16(m[i]), s.m, 0x1p-8 * std::abs(s.m) + 1e-7) << i;
          ASSERT_NEAR(v[block], s.v, 1e-6 * s.v) << i << " of " << width;
          ASSERT_NEAR(w[i], s.w, 1e-6 * (1 + std::abs(s.w)))
              << i << " of " << width << " seed " << kUpdateInputs.seed;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, UpdatesOnIsa, testing::ValuesIn(kAllIsas), isa_word);

}  // namespace
}  // namespace gossamer::kernels
