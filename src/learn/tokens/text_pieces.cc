// SPDX-License-Identifier: Apache-2.0
#include "learn/tokens/text_pieces.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/printable.h"
#include "learn/text/words.h"

namespace gossamer::tokens {
namespace {

bool inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::size_t first_piece(std::string_view text, std::size_t most) {
  CHECK(most >= kCharacterBytes && text.size() > most, most, text.size());
  if (const std::size_t last = text.substr(0, most).rfind('\n'); last != std::string_view::npos)
    return last + 1;
  for (std::size_t back = 0; back < kCharacterBytes; ++back) {
    if (!inside_character(text[most - back])) return most - back;
  }
  // No character is that long, so the byte behind the cut is bad wherever the cut is.
  return most;
}

PlainText::PlainText(data::ByteSource& source, std::size_t most) : source_(source), most_(most) {
  CHECK(most >= kCharacterBytes, most);
}

Result<void> PlainText::fill() {
  // A byte more than a piece has shows whether a piece ends inside a character.
  if (buffer_.empty()) buffer_.resize(most_ + 1);
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const auto room = std::span(buffer_).subspan(end_);
  if (ended_ || room.empty()) return {};
  const auto got = source_.read(std::as_writable_bytes(room));
  if (!got.ok()) return got.error();
  ended_ = *got < room.size();
  end_ += *got;
  return {};
}

Result<std::string_view> PlainText::next() {
  if (fault_) return std::string_view();
  if (auto done = fill(); !done.ok()) return done.error();
  if (!started_) {
    started_ = true;
    if (std::string_view(buffer_.data(), end_).starts_with(data::kByteOrderMark)) {
      begin_ = data::kByteOrderMark.size();
      if (auto done = fill(); !done.ok()) return done.error();
    }
  }
  const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
  const std::string_view piece = rest.size() > most_ ? rest.substr(0, first_piece(rest, most_)) : rest;
  begin_ += piece.size();
  if (!good(piece)) return std::string_view();
  move_place(piece);
  return piece;
}

bool PlainText::good(std::string_view piece) {
  const std::size_t zero = std::min(piece.find('\0'), piece.size());
  const std::size_t bad = text::valid_utf8_prefix(piece.substr(0, zero));
  if (bad == piece.size()) return true;
  move_place(piece.substr(0, bad));
  const bool is_zero = bad == zero;
  fault_ = {.line = line_,
            .bad = data::bad_at(column_ - 1, is_zero ? "the file is not text" : "the text is not UTF-8",
                                is_zero ? "a zero byte" : quote(piece.substr(bad, 1)), "text in UTF-8")};
  return false;
}

void PlainText::move_place(std::string_view text) {
  const std::size_t last = text.rfind('\n');
  if (last == std::string_view::npos) {
    column_ += text.size();
    return;
  }
  line_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  column_ = text.size() - last;
}

}  // namespace gossamer::tokens
