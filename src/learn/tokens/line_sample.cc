// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/line_sample.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "learn/tokens/text_pieces.h"

namespace gossamer::tokens {

LineSample::LineSample(std::size_t bytes) : most_(bytes), random_(0, Purpose::kLineSample) {
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
  std::map<std::uint64_t, std::string> ordered;
  for (auto& [place, line] : lines_) ordered.emplace(place.second, std::move(line));
  lines_.clear();
  kept_ = 0;
  std::vector<std::string> lines;
  lines.reserve(ordered.size());
  for (auto& [position, line] : ordered) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gossamer::tokens
