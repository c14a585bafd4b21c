// SPDX-License-Identifier: Apache-2.0
//
// TokenText: a text as numbers of its words, the form in which windows are cut from it (text_windows.h).
// TokenTextBuilder makes one from words as they are read.
//
// Words are numbered by falling count, equal counts by first appearance. Words below the least count are left
// out of the text before windows are cut, as word2vec does. (Mikolov et al., "Distributed representations of
// words and phrases and their compositionality", NIPS 2013.)
//
// Memory: 4 bytes a word of the text, beside the vocabulary. Thread rule: a builder has one owner; a
// TokenText is immutable once built.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/data/name_table.h"

namespace gossamer::data {

struct TokenText {
  // Stands between two lines; never first, never last, never twice in a row.
  static constexpr std::uint32_t kLineEnd = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> token;  // word numbers and line ends
  std::vector<std::string> words;    // by number, all different
  std::vector<std::uint64_t> count;  // of each word in `token`, at least 1
};

struct VocabularyLimits {
  std::uint64_t min_count = 5;           // rarer words are left out
  std::uint32_t max_words = 10'000'000;  // more frequent words are kept first
};

class TokenTextBuilder {
 public:
  // Requires a word, not empty.
  void add(std::string_view word) { token_.push_back(count(names_.id(word))); }
  void end_line() { token_.push_back(TokenText::kLineEnd); }

  // kBadData without `where` when no word is left. No call may follow.
  [[nodiscard]] Result<TokenText> finish(const VocabularyLimits& limits);

 private:
  std::uint32_t count(std::uint32_t word) {
    if (word == count_.size()) count_.push_back(0);
    ++count_[word];
    return word;
  }

  NameTable names_;
  std::vector<std::uint64_t> count_;
  std::vector<std::uint32_t> token_;
};

}  // namespace gossamer::data
