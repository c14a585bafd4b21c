// SPDX-License-Identifier: Apache-2.0
//
// A plain text as pieces that are cut at line ends. Internal to learn/tokens.
//
// Where a text is cut depends on its bytes and on the most bytes of a piece alone, never on how it was read.
// Thread rule: plain functions; a PlainText belongs to one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/data/read/bad_lines.h"
#include "learn/data/read/byte_source.h"

namespace gossamer::tokens {

// The longest character of UTF-8. A piece has room for one.
inline constexpr std::size_t kCharacterBytes = 4;

// The size of the first piece of `text`, which is longer than `most` bytes: the longest run of whole lines
// that fits. If not even the first line fits, then as many whole characters of it as do. Requires
// most >= kCharacterBytes (checked).
[[nodiscard]] std::size_t first_piece(std::string_view text, std::size_t most);

// The pieces of one source. A byte order mark at its start is left out.
class PlainText {
 public:
  // A line, from 1, and what is wrong with it.
  struct Fault {
    std::uint64_t line = 0;
    data::BadLine bad;
  };

  PlainText(data::ByteSource& source, std::size_t most);

  // The next piece, valid until the next call; empty at the end and where fault() has a value. Errors: those
  // of the source.
  [[nodiscard]] Result<std::string_view> next();
  // The reason why the source is no text: it has a zero byte, or a byte that is no UTF-8.
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }
  // The lines of the pieces so far. A last line counts without its end, too.
  [[nodiscard]] std::uint64_t lines() const { return line_ - 1 + (column_ > 1 ? 1 : 0); }

 private:
  [[nodiscard]] Result<void> fill();
  // Notes the first bad byte of a piece.
  [[nodiscard]] bool good(std::string_view piece);
  void move_place(std::string_view text);

  data::ByteSource& source_;
  std::size_t most_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of the bytes that no piece had yet
  std::size_t end_ = 0;
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t line_ = 1;    // of the next piece's first byte
  std::uint64_t column_ = 1;  // in bytes
  std::optional<Fault> fault_;
};

}  // namespace gossamer::tokens
