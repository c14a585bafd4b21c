// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gossamer {
namespace {

// Optimal string alignment distance (Damerau-Levenshtein without overlapping edits), three rows of memory.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> back(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) back[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = back[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      now[j] = std::min({back[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], two_back[j - 2] + 1);
      }
    }
    std::swap(two_back, back);
    std::swap(back, now);
  }
  return back[b.size()];
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (const std::string_view name : names) {
    std::size_t distance = edit_distance(word, name);
    // One edit further than the same mistake in a full name, so that full names win ties.
    if (word.find('.') == std::string_view::npos && name.find('.') != std::string_view::npos) {
      distance = std::min(distance, edit_distance(word, last_part(name)) + 1);
    }
    if (distance >= best_distance) continue;
    best = name;
    best_distance = distance;
  }
  return std::string(best);
}

}  // namespace gossamer
