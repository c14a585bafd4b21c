// SPDX-License-Identifier: Apache-2.0
#include "learn/text/phrase_index.h"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/check.h"

namespace gossamer::text {
namespace {

constexpr std::size_t kWords = 3;

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  return XXH3_64bits_withSeed(words.data(), words.size_bytes(), words.size());
}

}  // namespace

Result<void> PhraseIndex::add(std::string_view text) {
  CHECK(shared_.empty());
  words_.clear();
  const Result<void> split = splitter_.split(
      text, [this](std::string_view word) { words_.push_back(XXH3_64bits(word.data(), word.size())); });
  if (!split.ok()) return split.error();
  const auto first = static_cast<std::ptrdiff_t>(hashes_.size());
  if (!words_.empty() && words_.size() < kWords) hashes_.push_back(hash_of(words_));
  for (std::size_t i = 0; i + kWords <= words_.size(); ++i) {
    hashes_.push_back(hash_of(std::span(words_).subspan(i, kWords)));
  }
  std::sort(hashes_.begin() + first, hashes_.end());
  hashes_.erase(std::unique(hashes_.begin() + first, hashes_.end()), hashes_.end());
  begin_.push_back(hashes_.size());
  return {};
}

void PhraseIndex::freeze() {
  const auto texts = static_cast<std::uint32_t>(begin_.size() - 1);
  phrases_.reserve(hashes_.size());
  for (std::uint32_t text = 0; text < texts; ++text) {
    for (std::uint64_t i = begin_[text]; i < begin_[text + 1]; ++i) phrases_.push_back({hashes_[i], text});
  }
  std::sort(phrases_.begin(), phrases_.end());
  shared_.assign(texts + std::size_t{1}, 0);
}

double PhraseIndex::largest_share(std::uint32_t id) {
  CHECK(id + std::size_t{1} < begin_.size() && !shared_.empty(), id, begin_.size());
  std::uint32_t largest = 0;
  touched_.clear();
  for (std::uint64_t i = begin_[id]; i < begin_[id + 1]; ++i) {
    auto at = std::lower_bound(phrases_.begin(), phrases_.end(), Phrase{hashes_[i], 0});
    for (; at != phrases_.end() && at->hash == hashes_[i]; ++at) {
      if (at->text == id) continue;
      if (shared_[at->text] == 0) touched_.push_back(at->text);
      largest = std::max(largest, ++shared_[at->text]);
    }
  }
  for (const std::uint32_t text : touched_) shared_[text] = 0;
  const std::uint64_t phrases = begin_[id + 1] - begin_[id];
  return phrases == 0 ? 0.0 : static_cast<double>(largest) / static_cast<double>(phrases);
}

}  // namespace gossamer::text
