// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/line_sample.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gossamer::tokens {
namespace {

using testing::ElementsAre;

// Claim: a text that fits is kept whole, in order, without empty lines; a piece ends a line.
TEST(LineSample, KeepsWhatFits) {
  LineSample sample(1 << 20);
  sample.add("one\n\ntwo\nthr");
  sample.add("ee\n");
  EXPECT_THAT(sample.take(), ElementsAre("one", "two", "thr", "ee"));
  EXPECT_TRUE(sample.take().empty());
}

// Claim: a long line is cut at ends of characters, and nothing of it is lost.
TEST(LineSample, CutsLongLines) {
  std::string line = "x";
  while (line.size() < 3 * LineSample::kLongest) line += "\xE4\xB8\xAD";
  LineSample sample(1 << 20);
  sample.add(line);
  std::string whole;
  for (const std::string& part : sample.take()) {
    EXPECT_LE(part.size(), LineSample::kLongest);
    EXPECT_NE(static_cast<unsigned char>(part.front()) & 0xC0U, 0x80U);
    whole += part;
  }
  EXPECT_EQ(whole, line);
  // A line that is no UTF-8 is cut anywhere.
  sample.add(std::string(2 * LineSample::kLongest + 1, '\x80'));
  EXPECT_EQ(sample.take().size(), 3U);
}

// Claim: of a text that does not fit, as much is kept as fits. Lines of its beginning are as likely as those
// of its end, and a text gives one sample.
TEST(LineSample, IsDrawnFromAll) {
  const auto draw = [] {
    LineSample sample(1000 * (8 + LineSample::kBeside));
    for (int i = 0; i < 20'000; ++i) sample.add(fmt::format("{:08}\n", i));
    return sample.take();
  };
  const std::vector<std::string> lines = draw();
  EXPECT_EQ(lines, draw());
  ASSERT_EQ(lines.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(lines));
  // 250 expected in each quarter, with a standard deviation of 14.
  for (int quarter = 0; quarter < 4; ++quarter) {
    const auto inside = std::ranges::count_if(
        lines, [&](const std::string& line) { return std::stoi(line) / 5000 == quarter; });  // fmt: skip
    EXPECT_NEAR(static_cast<double>(inside), 250, 60) << quarter;
  }
}

// Claim: characters of words that differ are bounded, and those of a word that comes again count once. So a
// text of words is kept whole, and of one without spaces there are as many characters as are allowed. The
// spaces before a word are a part of it, so a table that is filled up by spaces is no text of few words.
TEST(LineSample, BoundsNewWords) {
  LineSample words(1 << 20, 18);  // "café", " au", " lait,", " café"
  for (int i = 0; i < 1000; ++i) words.add("caf\xC3\xA9 au lait, caf\xC3\xA9\n");
  EXPECT_EQ(words.take().size(), 1000U);
  LineSample one_less(1 << 20, 17);
  one_less.add("caf\xC3\xA9 au lait, caf\xC3\xA9\n");
  EXPECT_TRUE(one_less.take().empty());
  LineSample table(1 << 20, 210);  // "1 " .. with 1 to 19 spaces before the 1: the sum of 2 to 20, and one
  for (std::size_t spaces = 1; spaces < 20; ++spaces) table.add("1" + std::string(spaces, ' ') + "1\n");
  EXPECT_EQ(table.take().size(), 19U);
  LineSample half(1 << 20, 105);
  for (std::size_t spaces = 1; spaces < 20; ++spaces) half.add("1" + std::string(spaces, ' ') + "1\n");
  EXPECT_LT(half.take().size(), 19U);
  const auto draw = [] {
    LineSample letters(1 << 20, 5000);
    for (int i = 0; i < 2000; ++i) letters.add(fmt::format("{:07}\xC3\xA9\n", i));
    return letters.take();
  };
  const std::vector<std::string> lines = draw();
  EXPECT_EQ(lines, draw());
  ASSERT_EQ(lines.size(), 5000U / 8);
  EXPECT_TRUE(std::ranges::is_sorted(lines));
  // 312 expected in each half, with a standard deviation of 10.
  const auto low = std::ranges::count_if(lines, [](const std::string& line) { return line < "0001000"; });
  EXPECT_NEAR(static_cast<double>(low), 312, 50);
}

}  // namespace
}  // namespace gossamer::tokens
