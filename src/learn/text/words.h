// SPDX-License-Identifier: Apache-2.0
//
// WordSplitter: the words of a text, in the form that features are made of. The rules:
// - The text is UTF-8. utf8proc brings it to Unicode normal form NFKC, with full case folding. It drops
//   default ignorable characters (soft hyphens, joiners). "Straße" and "STRASSE" are one word, and so are
//   "ﬁn" and "fin".
// - A word is a maximal run of letters, marks and digits (Unicode categories L, M, N).
// - An apostrophe (' or U+2019, written ' in the result) may stand between two of them: "don't", "o'clock". A
//   possessive "'s" at the end is dropped: "deer's" is "deer".
// - A hyphen separates, as all else does: "well-known" is "well" and "known", since both spellings are common
//   and should meet.
// - A word is cut after kMaxWordBytes, at a code point; what follows is left out up to the word's end.
//
// Pure ASCII takes a path of its own, a table look-up per byte. Errors: kBadData without `where` for invalid
// UTF-8, with the position (bytes, from 1) in `got`. Words before it may have been delivered already.
// Owner and thread: one; it holds scratch memory that is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace gossamer::text {

inline constexpr std::size_t kMaxWordBytes = 128;

// Takes one word, valid only during the call.
using WordSink = FunctionRef<void(std::string_view word)>;

class WordSplitter {
 public:
  // Hands over the words of `text` in their order.
  [[nodiscard]] Result<void> split(std::string_view text, WordSink sink);

  // The text in the normal form; valid until the next call.
  [[nodiscard]] Result<std::string_view> normalise(std::string_view text);

 private:
  std::vector<std::int32_t> code_points_;
  std::string normal_;
  std::string word_;
};

// The position of the first byte that is no valid UTF-8 (0-based), or text.size().
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

// A name in the same normal form, without blanks at its ends and with single spaces inside. "Pied-à-terre"
// keeps its marks, unlike a text that is cut into words. kBadData for invalid UTF-8.
[[nodiscard]] Result<std::string> folded_name(std::string_view name);

// A name as one word of a format that separates by blanks. Every blank (Unicode categories Zs, Zl, Zp) and
// control character (Cc) becomes '_', and an empty name is "_". Requires valid UTF-8.
[[nodiscard]] std::string without_blanks(std::string_view name);

// The text without spaces, tabs and carriage returns at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

// The words of a text joined by one space each. Two texts are equal for us if these are.
[[nodiscard]] Result<std::string> normalised_text(std::string_view text);

}  // namespace gossamer::text
