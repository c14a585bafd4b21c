// SPDX-License-Identifier: Apache-2.0
//
// LineSample: lines of a text that is too large to be kept, up to a number of bytes of memory. Each line gets
// a random number, and those with the least numbers are kept: any line as likely as any other. The sample
// depends on the text alone. It is the part of a text on which a tokenizer is trained.
//
//   LineSample sample(32 << 20);
//   sample.add(piece);  // of each document
//   std::vector<std::string> lines = sample.take();
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::tokens {

class LineSample {
 public:
  // A longer line is cut behind so many bytes, at the end of a character.
  static constexpr std::size_t kLongest = 4096;

  // What a line takes beside its bytes.
  static constexpr std::size_t kBeside = 128;

  // The most characters in words that differ. A word begins with the spaces before it. SentencePiece takes up
  // to 300 bytes of memory for each of them, and none for a word that it has seen. A text without spaces has
  // no word twice.
  static constexpr std::size_t kMostCharacters = std::size_t{2} << 20;

  // Keeps at most `bytes` bytes, at least kLongest + kBeside, and gives at most so many characters.
  explicit LineSample(std::size_t bytes, std::size_t characters = kMostCharacters);

  // Takes a piece of a text in valid UTF-8; its end is a line's end. Empty lines are left out.
  void add(std::string_view piece);
  // Lines that were kept, in the order of the text: all of them, or as many as the characters allow. Nothing
  // is kept afterwards.
  [[nodiscard]] std::vector<std::string> take();

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // the random number of a line, and its position

  void add_line(std::string_view line);

  std::size_t most_;
  std::size_t most_characters_;
  std::size_t kept_ = 0;  // bytes of lines_, and beside them
  std::uint64_t seen_ = 0;
  Rng random_;
  Place bound_ = {~std::uint64_t{0}, 0};  // the least number of a line that was left out
  std::map<Place, std::string> lines_;
};

}  // namespace gossamer::tokens
