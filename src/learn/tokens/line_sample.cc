// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/line_sample.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/check.h"
#include "learn/tokens/text_pieces.h"

namespace gossamer::tokens {

namespace {

// Counts characters of words that it has not met yet. A word begins with the spaces before it, because
// SentencePiece cuts lines so where pieces may be spaces alone.
class NewWords {
 public:
  std::size_t characters(std::string_view line) {
    std::size_t sum = 0;
    while (!line.empty()) {
      const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
      const std::string_view word = line.substr(0, line.find(' ', begin));
      line.remove_prefix(word.size());
      if (!met_.insert(word).second) continue;
      // What is no first byte of a character is a part of one.
      sum += static_cast<std::size_t>(std::ranges::count_if(
          word, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
    }
    return sum;
  }

 private:
  std::unordered_set<std::string_view> met_;  // in the lines
};

}  // namespace

LineSample::LineSample(std::size_t bytes, std::size_t characters)
    : most_(bytes), most_characters_(characters), random_(0, Purpose::kLineSample) {
  CHECK(bytes >= kLongest + kBeside, bytes);
}

void LineSample::add(std::string_view piece) {
  while (!piece.empty()) {
    std::string_view line = piece.substr(0, piece.find('\n'));
    piece.remove_prefix(std::min(line.size() + 1, piece.size()));
    while (!line.empty()) {
      const std::size_t end = line.size() > kLongest ? first_piece(line, kLongest) : line.size();
      add_line(line.substr(0, end));
      line.remove_prefix(end);
    }
  }
}

void LineSample::add_line(std::string_view line) {
  const Place place{random_.next_u64(), seen_++};
  if (place >= bound_) return;
  lines_.emplace(place, line);
  kept_ += line.size() + kBeside;
  while (kept_ > most_) {
    const auto last = std::prev(lines_.end());
    kept_ -= last->second.size() + kBeside;
    bound_ = last->first;
    lines_.erase(last);
  }
}

std::vector<std::string> LineSample::take() {
  // The lines with the least random numbers are a sample, too.
  NewWords words;
  std::size_t characters = 0;
  std::map<std::uint64_t, std::string> ordered;
  for (auto& [place, line] : lines_) {
    characters += words.characters(line);
    if (characters > most_characters_) break;
    ordered.emplace(place.second, line);
  }
  lines_.clear();
  kept_ = 0;
  std::vector<std::string> lines;
  lines.reserve(ordered.size());
  for (auto& [position, line] : ordered) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gossamer::tokens
