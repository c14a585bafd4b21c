// SPDX-License-Identifier: Apache-2.0
//
// RecordFormat: how a user's records are written. What is done with a format stands in one row of a table
// (commands/records/record_formats.h). Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gossamer::data {

enum class RecordFormat {
  // A user names these. JSON lines are text by that name, unless their content says otherwise.
  kXmc,
  kJsonlText,
  kSessions,
  kText,  // plain text
  // The content tells these.
  kJsonlNumbers,  // features by number
  kJsonlNames,    // features by name
  kCache,         // imported records
};

// The words by which a user names a format, in the order of the enum.
inline constexpr std::array<std::string_view, 4> kRecordFormatWords = {"xmc", "jsonl", "sessions", "text"};

[[nodiscard]] constexpr std::optional<RecordFormat> record_format(std::string_view word) {
  const auto found = std::ranges::find(kRecordFormatWords, word);
  if (found == kRecordFormatWords.end()) return std::nullopt;
  return static_cast<RecordFormat>(found - kRecordFormatWords.begin());
}

}  // namespace gossamer::data
