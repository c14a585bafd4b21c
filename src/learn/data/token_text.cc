// SPDX-License-Identifier: Apache-2.0
#include "learn/data/token_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gossamer::data {

namespace {

std::string times(std::uint64_t count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

}  // namespace

Result<TokenText> TokenTextBuilder::finish(const VocabularyLimits& limits) {
  std::vector<std::uint32_t> order(count_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    return count_[a] != count_[b] ? count_[a] > count_[b] : a < b;
  });
  std::vector<std::uint32_t> number(count_.size(), TokenText::kLineEnd);
  TokenText text;
  for (const std::uint32_t word : order) {
    if (count_[word] < limits.min_count || text.words.size() == limits.max_words) break;
    number[word] = static_cast<std::uint32_t>(text.words.size());
    text.words.emplace_back(names_.name(word));
    text.count.push_back(count_[word]);
  }
  if (text.words.empty()) {
    const std::uint64_t most = count_.empty() ? 0 : count_[order.front()];
    return Error{.kind = ErrorKind::kBadData,
                 .what = "no word of the text is frequent enough",
                 .got = "the same word at most " + times(most),
                 .expected = "words that stand " + times(limits.min_count) + " or more",
                 .fix = "lower word2vec.min_count, or give more text"};
  }
  std::size_t kept = 0;
  for (const std::uint32_t word : token_) {
    if (word == TokenText::kLineEnd) {
      if (kept > 0 && token_[kept - 1] != TokenText::kLineEnd) token_[kept++] = word;
    } else if (number[word] != TokenText::kLineEnd) {
      token_[kept++] = number[word];
    }
  }
  while (kept > 0 && token_[kept - 1] == TokenText::kLineEnd) --kept;
  token_.resize(kept);
  token_.shrink_to_fit();
  text.token = std::move(token_);
  return text;
}

}  // namespace gossamer::data
