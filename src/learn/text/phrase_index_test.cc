// SPDX-License-Identifier: Apache-2.0
#include "learn/text/phrase_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"

namespace gossamer::text {
namespace {

// Shares of known texts: 2 of 3 3-grams, a copy that differs in case and commas, short texts, no words.
TEST(PhraseIndex, KnownShares) {
  PhraseIndex index;
  for (const auto* text :
       {"a b c d e", "x b c d e y", "Red, deer", "red deer!", "red deer meat", "", "p q r p q r p q"}) {
    ASSERT_TRUE(index.add(text).ok());
  }
  index.freeze();
  EXPECT_DOUBLE_EQ(index.largest_share(0), 2.0 / 3);
  EXPECT_DOUBLE_EQ(index.largest_share(1), 2.0 / 4);
  EXPECT_DOUBLE_EQ(index.largest_share(2), 1);
  EXPECT_DOUBLE_EQ(index.largest_share(3), 1);
  EXPECT_DOUBLE_EQ(index.largest_share(4), 0);
  EXPECT_DOUBLE_EQ(index.largest_share(5), 0);
  EXPECT_DOUBLE_EQ(index.largest_share(6), 0);
  EXPECT_DOUBLE_EQ(index.largest_share(0), 2.0 / 3);
}

// Agrees with sets of strings on random texts.
TEST(PhraseIndex, AgreesWithSets) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed, Purpose::kTest);
    PhraseIndex index;
    std::vector<std::set<std::string>> grams;
    for (int t = 0; t < 12; ++t) {
      std::string word;
      for (std::uint64_t n = 3 + rng.below(9); n > 0; --n) word += static_cast<char>('a' + rng.below(3));
      std::string text;
      std::set<std::string> own;
      for (std::size_t i = 0; i < word.size(); ++i) {
        text += {word[i], ' '};
        if (i + 3 <= word.size()) own.insert(word.substr(i, 3));
      }
      ASSERT_TRUE(index.add(text).ok());
      grams.push_back(own);
    }
    index.freeze();
    for (std::uint32_t a = 0; a < grams.size(); ++a) {
      double expected = 0;
      for (std::uint32_t b = 0; b < grams.size(); ++b) {
        if (a == b) continue;
        const auto shared = std::count_if(grams[a].begin(), grams[a].end(),
                                          [&](const auto& g) { return grams[b].contains(g); });
        expected = std::max(expected, static_cast<double>(shared) / static_cast<double>(grams[a].size()));
      }
      EXPECT_DOUBLE_EQ(index.largest_share(a), expected) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gossamer::text
