// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/token_windows.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/tokens/token_file_writer.h"

namespace gossamer::tokens {
namespace {

// A file of the tokens 0, 1, 2, ...: each token is its own position.
std::unique_ptr<TokenFile> counting_file(std::uint32_t size) {
  host::SimDisk disk;
  std::vector<TokenId> tokens(size);
  std::iota(tokens.begin(), tokens.end(), TokenId{0});
  auto writer = TokenFileWriter::create(disk, "text.tokens", {.vocabulary = size + 1});
  EXPECT_TRUE((*writer)->add(tokens, 0).ok());
  EXPECT_TRUE((*writer)->finish().ok());
  host::SimCompute compute({.workers = 1});
  return *TokenFile::open(disk, "text.tokens", compute);
}

// Claim: in every pass each target that is not left out is in exactly one window, behind its input. The
// windows begin at multiples of C, so neighbours share one token; less than C targets are left out, the last
// ones. For all small files and contexts.
TEST(TokenWindows, EveryTargetOnceAPass) {
  for (std::uint32_t size = 2; size <= 40; ++size) {
    const auto file = counting_file(size);
    for (std::uint32_t context = 1; context < size; ++context) {
      SCOPED_TRACE(testing::Message() << size << " tokens, context " << context);
      const auto windows = TokenWindows::cut(*file, {.context = context, .seed = 7});
      ASSERT_TRUE(windows.ok());
      EXPECT_EQ(windows->context(), context);
      EXPECT_EQ(windows->windows(), (size - 1) / context);
      EXPECT_LT(windows->left_out(), context);
      EXPECT_EQ(windows->windows() * context + windows->left_out(), size - 1);
      for (std::uint64_t pass = 0; pass < 2; ++pass) {
        std::set<TokenId> seen;
        for (std::uint64_t i = 0; i < windows->windows(); ++i) {
          const SampleId id(pass * windows->windows() + i);
          std::vector<TokenId> inputs(context);
          std::vector<TokenId> targets(context);
          windows->read(id, inputs, targets);
          EXPECT_EQ(inputs.front(), windows->window(id) * context);
          for (std::uint32_t at = 0; at < context; ++at) {
            EXPECT_EQ(inputs[at], inputs.front() + at);
            EXPECT_EQ(targets[at], inputs[at] + 1);
            EXPECT_TRUE(seen.insert(targets[at]).second);
          }
        }
        EXPECT_EQ(seen.size(), size - 1 - windows->left_out());
        EXPECT_EQ(*seen.rbegin(), size - 1 - windows->left_out());
      }
    }
  }
}

// Claim: the order of windows is that of the sampling plan: the same again for a seed, another for others.
TEST(TokenWindows, TheSeedDecidesTheOrder) {
  const auto file = counting_file(1001);
  const auto order = [&](std::uint64_t seed) {
    const auto windows = TokenWindows::cut(*file, {.context = 5, .seed = seed});
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < windows->windows(); ++i) all.push_back(windows->window(SampleId(i)));
    return all;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  const data::SamplingPlan plan(3, 200);
  EXPECT_EQ(order(3)[17], plan.record(SampleId(17)).value);
}

// Claim: the windows to measure have each target exactly once, in order, the last one shorter or not. For all
// small files and contexts, also contexts longer than the file.
TEST(EvalWindows, EveryTargetOnce) {
  for (std::uint32_t size = 2; size <= 30; ++size) {
    const auto file = counting_file(size);
    for (std::uint32_t context = 1; context <= size + 2; ++context) {
      SCOPED_TRACE(testing::Message() << size << " tokens, context " << context);
      const auto windows = EvalWindows::cut(*file, context);
      ASSERT_TRUE(windows.ok());
      EXPECT_EQ(windows->context(), context);
      EXPECT_EQ(windows->windows(), (size - 1 + context - 1) / context);
      EXPECT_EQ(windows->targets(), size - 1);
      TokenId next = 1;
      for (std::uint64_t i = 0; i < windows->windows(); ++i) {
        std::vector<TokenId> inputs(context + 1, 9999);
        std::vector<TokenId> targets(context + 1, 9999);
        const std::size_t length = windows->read(i, inputs, targets);
        ASSERT_GE(length, 1U);
        EXPECT_TRUE(length == context || (length < context && i + 1 == windows->windows()));
        for (std::size_t at = 0; at < length; ++at, ++next) {
          EXPECT_EQ(targets[at], next);
          EXPECT_EQ(inputs[at], next - 1);
        }
        EXPECT_EQ(inputs[length], 9999U);
        EXPECT_EQ(targets[length], 9999U);
      }
      EXPECT_EQ(next, size);
    }
  }
}

// Claim: a file without a window is bad data, with the file, its tokens and the context.
TEST(TokenWindows, RefusesShortFiles) {
  const auto file = counting_file(8);
  EXPECT_TRUE(TokenWindows::cut(*file, {.context = 7}).ok());
  const auto refused = TokenWindows::cut(*file, {.context = 8});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(refused.error().message(),
            "text.tokens: the text is too short for a context of 8 tokens: got 8 tokens; expected at least 9 "
            "tokens; take a longer text, or a smaller context");
  EXPECT_FALSE(TokenWindows::cut(*file, {.context = UINT32_MAX}).ok());
  for (const std::uint32_t size : {0U, 1U}) {
    const auto short_file = counting_file(size);
    EXPECT_FALSE(TokenWindows::cut(*short_file, {.context = 1}).ok());
    EXPECT_EQ(EvalWindows::cut(*short_file, 1).error().kind, ErrorKind::kBadData);
  }
}

// Claim: contexts of nothing, windows past the end and spans of a wrong size are caught.
TEST(TokenWindowsDeathTest, ChecksCallers) {
  const auto file = counting_file(10);
  EXPECT_DEATH((void)TokenWindows::cut(*file, {}).ok(), "CHECK failed");
  EXPECT_DEATH((void)EvalWindows::cut(*file, 0).ok(), "CHECK failed");
  const auto windows = TokenWindows::cut(*file, {.context = 3});
  const auto measured = EvalWindows::cut(*file, 3);
  std::vector<TokenId> two(2);
  std::vector<TokenId> three(3);
  std::vector<TokenId> four(4);
  EXPECT_DEATH(windows->read(SampleId(0), two, three), "CHECK failed");
  EXPECT_DEATH(windows->read(SampleId(0), three, four), "CHECK failed");
  EXPECT_DEATH((void)measured->read(3, three, three), "CHECK failed");
  EXPECT_DEATH((void)measured->read(0, three, two), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::tokens
