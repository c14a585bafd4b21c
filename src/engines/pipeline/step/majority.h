// SPDX-License-Identifier: Apache-2.0
//
// Word against word: what members say, and those that differ from most.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "base/ids.h"

namespace gossamer::pipeline {

struct Differing {
  std::set<NodeId> from_most = {};  // they say otherwise than more than half
  std::set<NodeId> disputed = {};   // all that say something, where no word is that of more than half

  void add(Differing other) {
    from_most.merge(other.from_most);
    disputed.merge(other.disputed);
  }
  [[nodiscard]] bool none() const { return from_most.empty() && disputed.empty(); }
};

template <class Word>
[[nodiscard]] Differing differing(const std::map<NodeId, Word>& words) {
  std::map<Word, std::size_t> counts;
  for (const auto& [node, word] : words) ++counts[word];
  if (counts.size() < 2) return {};
  const Word* most = nullptr;
  for (const auto& [word, count] : counts) {
    if (2 * count > words.size()) most = &word;
  }
  Differing found;
  for (const auto& [node, word] : words) {
    if (most == nullptr) {
      found.disputed.insert(node);
    } else if (word != *most) {
      found.from_most.insert(node);
    }
  }
  return found;
}

}  // namespace gossamer::pipeline
