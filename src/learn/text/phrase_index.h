// SPDX-License-Identifier: Apache-2.0
//
// PhraseIndex: how much of a text stands in one other text, by word 3-grams. It keeps a test set honest when
// texts are copied between sources. A text of fewer than three words counts as one phrase.
//
// Texts are compared word by word (words.h). 3-grams are compared by 64-bit hashes: a collision may move one
// 3-gram in 10^12.
// Memory: 16 bytes per 3-gram. Owner and thread: one (largest_share() has scratch memory).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/text/words.h"

namespace gossamer::text {

class PhraseIndex {
 public:
  // Numbers the texts 0, 1, 2, ... Before freeze(). kBadData for text that is no UTF-8.
  [[nodiscard]] Result<void> add(std::string_view text);
  // Ends the adding.
  void freeze();

  // The largest share, 0..1, of the distinct 3-grams of text `id` that stand in one other text; 0 for a text
  // without words. After freeze().
  [[nodiscard]] double largest_share(std::uint32_t id);

 private:
  struct Phrase {
    std::uint64_t hash;
    std::uint32_t text;
    auto operator<=>(const Phrase&) const = default;
  };

  WordSplitter splitter_;
  std::vector<std::uint64_t> words_;   // of the text being added
  std::vector<Phrase> phrases_;        // after freeze() sorted by hash
  std::vector<std::uint64_t> hashes_;  // by text
  std::vector<std::uint64_t> begin_ = {0};
  std::vector<std::uint32_t> shared_;  // per text, all 0 between calls
  std::vector<std::uint32_t> touched_;
};

}  // namespace gossamer::text
