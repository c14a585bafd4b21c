// SPDX-License-Identifier: Apache-2.0
//
// Formats that users have and that no reader takes: CSV, TSV, fastText's __label__ lines, JSON arrays, and
// some of bytes. They are told by the beginning of a file, so that an error names the format and a command
// that converts the file. Without that, the first bad line of XMLC text would be all that a user hears.
//
// Thread rule: plain functions.
#pragma once

#include <optional>

#include "base/result.h"
#include "commands/records/conversion.h"

namespace gossamer::commands {

// kBadData for a file in such a format. Nothing for XMLC text and JSON lines, and where the format is not
// known.
[[nodiscard]] std::optional<Error> other_format(const SeenFile& file);

// "utf-16", "utf-16le" or "utf-16be" for a text that begins with a mark of it, or that is mostly Latin
// letters in it; else empty.
[[nodiscard]] std::string_view utf16_name(std::string_view begin);

// The same for a file that is to be lines of names: sessions or plain text, in which nearly any line would
// do. It refuses what is surely another format by its first lines. With `as_is`, it refuses only bytes that
// no text has.
struct WantedLines {
  const char* lines;  // what such a file holds
  bool as_is = false;
};
[[nodiscard]] std::optional<Error> no_lines(const SeenFile& file, const WantedLines& wanted);

}  // namespace gossamer::commands
