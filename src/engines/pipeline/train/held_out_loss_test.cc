// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/held_out_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engines/pipeline/train/test_tiny_text.h"

namespace gossamer::pipeline {
namespace {

// Claim: each target counts once, for all short texts and microbatches: the sum is that of the windows one by
// one, the shorter last one included.
TEST(HeldOutLoss, EachTargetOnce) {
  const auto model = TinyText::model();
  for (std::uint32_t size = 2; size <= 40; ++size) {
    const auto file = TinyText::file(size);
    const auto windows = tokens::EvalWindows::cut(*file, 6);
    ASSERT_TRUE(windows.ok());
    double loss = 0;
    for (std::uint32_t from = 0; from + 1 < size; from += 6) {
      const std::uint32_t length = std::min(6U, size - 1 - from);
      std::vector<TokenNumber> text(length + 1);
      file->copy(from, text);
      const auto task = *model->begin({.windows = 1,
                                       .context = length,
                                       .tokens = std::span(text).first(length),
                                       .targets = std::span(text).last(length)},
                                      Keep::kInput);
      while (*task->forward_next()) continue;
      loss += task->loss().loss;
    }
    for (const std::uint32_t microbatch : {1U, 2U, 100U}) {
      const auto all = held_out_loss(*model, {.windows = *windows, .bytes = size, .microbatch = microbatch});
      ASSERT_TRUE(all.ok());
      EXPECT_EQ(all->tokens, size - 1);
      EXPECT_NEAR(all->loss, loss, 1e-12 * loss) << size << " tokens, microbatches of " << microbatch;
    }
  }
}

// Claim: what is asked to stop ends before its next microbatch.
TEST(HeldOutLoss, StopsBetweenMicrobatches) {
  const auto model = TinyText::model();
  const auto file = TinyText::file(40);
  const auto windows = tokens::EvalWindows::cut(*file, 6);
  ASSERT_TRUE(windows.ok());
  int asked = 0;
  const auto stopped = held_out_loss(
      *model, {.windows = *windows, .bytes = 40, .microbatch = 2, .stop = [&] { return ++asked == 3; }});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().what, "stopped");
  EXPECT_EQ(asked, 3);
}

// Claim: perplexity is that of the mean loss. Bits per byte count bytes of the text, not tokens, and not the
// bytes of the first token, which costs nothing.
TEST(HeldOutLoss, InBitsAndPerplexity) {
  const HeldOutLoss all{.loss = 100 * std::log(2.0), .tokens = 50, .bytes = 200};
  EXPECT_DOUBLE_EQ(all.perplexity(), 4);
  EXPECT_DOUBLE_EQ(all.bits_per_byte(), 0.5);
  const HeldOutLoss given{.loss = 100 * std::log(2.0), .tokens = 50, .bytes = 204, .given_bytes = 4};
  EXPECT_DOUBLE_EQ(given.bits_per_byte(), 0.5);
}

}  // namespace
}  // namespace gossamer::pipeline
