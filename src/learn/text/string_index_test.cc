// SPDX-License-Identifier: Apache-2.0
#include "learn/text/string_index.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/rng.h"

namespace gossamer::text {
namespace {

// Any sequence of adds and finds does what a map does.
TEST(StringIndex, AgreesWithAMap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, Purpose::kTest);
    StringIndex index;
    std::map<std::string, std::uint32_t> model;
    for (int i = 0; i < 3000; ++i) {
      std::string word(rng.below(4), 'a');
      for (char& c : word) c = static_cast<char>('a' + rng.below(16));
      const auto known = model.find(word);
      EXPECT_EQ(index.find(word), known == model.end() ? StringIndex::kNone : known->second)
          << "seed " << seed;
      if (rng.below(2) == 0) {
        const std::uint32_t id = model.emplace(word, static_cast<std::uint32_t>(model.size())).first->second;
        EXPECT_EQ(index.add(word), id) << "seed " << seed;
      }
    }
    ASSERT_EQ(index.size(), model.size());
    for (const auto& [word, id] : model) EXPECT_EQ(index.string(id), word);
  }
}

// The empty string and strings with zeros are strings.
TEST(StringIndex, OddStrings) {
  StringIndex index;
  EXPECT_EQ(index.find(""), StringIndex::kNone);
  EXPECT_EQ(index.add(""), 0U);
  EXPECT_EQ(index.add(std::string_view("\0a", 2)), 1U);
  EXPECT_EQ(index.add(std::string_view("\0", 1)), 2U);
  EXPECT_EQ(index.find(""), 0U);
  EXPECT_EQ(index.find(std::string_view("\0a", 2)), 1U);
}

}  // namespace
}  // namespace gossamer::text
