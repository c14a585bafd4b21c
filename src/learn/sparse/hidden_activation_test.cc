// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/hidden_activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"

namespace gossamer::sparse {
namespace {

constexpr std::size_t kColumns = 64;
constexpr std::size_t kDrawnSamples = 400;

// The masks of many samples of one layer and step, one after the other.
std::vector<std::uint8_t> drawn_masks(const DropoutMask& mask, StepNumber step, std::size_t layer) {
  std::vector<std::uint8_t> kept(kColumns * kDrawnSamples);
  for (std::size_t sample = 0; sample < kDrawnSamples; ++sample) {
    mask.draw(step, {.layer = layer, .sample = sample}, 0,
              std::span(kept).subspan(sample * kColumns, kColumns));
  }
  return kept;
}

double share_kept(const std::vector<std::uint8_t>& kept) {
  return static_cast<double>(std::ranges::count(kept, 1)) / static_cast<double>(kept.size());
}

// The share of places where both say the same.
double agreement(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(a.size());
}

// Claim: A mask keeps the share 1 - dropout, and its scale is 1 / (1 - dropout). Without dropout it keeps
// everything.
TEST(DropoutMask, KeepsItsShare) {
  for (const double dropout : {0.1, 0.25, 0.5, 0.9}) {
    SCOPED_TRACE(dropout);
    const DropoutMask mask({.dropout = dropout, .seed = 3});
    ASSERT_TRUE(mask.active());
    EXPECT_NEAR(mask.scale(), 1 / (1 - dropout), 1e-3);
    // Five standard deviations of 25,600 draws are 0.016 or less.
    EXPECT_NEAR(share_kept(drawn_masks(mask, StepNumber{7}, 0)), 1 - dropout, 0.016);
  }
  const DropoutMask none({.dropout = 0, .seed = 3});
  EXPECT_FALSE(none.active());
  EXPECT_EQ(none.scale(), 1);
}

// Claim: Masks of other steps, layers, samples and seeds are independent of each other. The same ones are
// equal, also when they are drawn in parts.
TEST(DropoutMask, IsDrawnAnew) {
  const DropoutMask mask({.dropout = 0.5, .seed = 3});
  const std::vector<std::uint8_t> kept = drawn_masks(mask, StepNumber{7}, 1);
  EXPECT_EQ(drawn_masks(mask, StepNumber{7}, 1), kept);
  // Independent halves agree in half of the places; five standard deviations are 0.016.
  EXPECT_NEAR(agreement(drawn_masks(mask, StepNumber{8}, 1), kept), 0.5, 0.016);
  EXPECT_NEAR(agreement(drawn_masks(mask, StepNumber{7}, 0), kept), 0.5, 0.016);
  EXPECT_NEAR(agreement(drawn_masks(DropoutMask({.dropout = 0.5, .seed = 4}), StepNumber{7}, 1), kept), 0.5,
              0.016);
  std::vector<std::uint8_t> next_sample = kept;
  std::ranges::rotate(next_sample, next_sample.begin() + kColumns);
  EXPECT_NEAR(agreement(next_sample, kept), 0.5, 0.016);
  std::array<std::uint8_t, 16> part{};
  mask.draw(StepNumber{7}, {.layer = 1, .sample = 5}, 20, part);
  EXPECT_TRUE(std::ranges::equal(part, std::span(kept).subspan(5 * kColumns + 20, part.size())));
}

// Claim: Training's layer drops units and scales up the others. What was 1 is 0 or 4/3 with a quarter
// dropped, and its mean stays.
TEST(HiddenActivation, DropsAndScales) {
  const HiddenActivation activation(
      {.activation = kernels::Activation::kIdentity, .dropout = 0.25, .seed = 3},
      kernels::kernels_for(kernels::best_isa()));
  LayerState layer(kDrawnSamples, {.stride = kColumns, .own = {0, kColumns}});
  std::ranges::fill(layer.y.span(), 1.0F);
  double sum = 0;
  for (std::size_t sample = 0; sample < kDrawnSamples; ++sample) {
    activation.forward(StepNumber{7}, {.layer = 0, .sample = sample}, layer);
  }
  for (const float h : layer.h.span()) {
    sum += static_cast<double>(h);
    ASSERT_TRUE(h == 0 || std::abs(h - 4.0F / 3) < 1e-6F) << h;
  }
  // Five standard deviations of the mean are 0.018.
  EXPECT_NEAR(sum / static_cast<double>(layer.h.size()), 1, 0.018);
}

}  // namespace
}  // namespace gossamer::sparse
