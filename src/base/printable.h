// SPDX-License-Identifier: Apache-2.0
//
// Makes texts of others fit for a line on a terminal: they may hold anything and be of any length. Thread
// rule: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gossamer {

// Enough bytes of what another machine says.
inline constexpr std::size_t kLineBytes = 300;
inline constexpr std::size_t kAllBytes = std::string_view::npos;

// At most `most` bytes of the text, with '?' for what is not printable ASCII: an escape sequence may move the
// cursor.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = kLineBytes);

// The whole text, with \xHH for what would move the cursor, ring the bell or end the line; UTF-8 stays.
[[nodiscard]] std::string visible(std::string_view text);

// The text in quotes: at most `most` bytes of it and "..." for the rest. Bytes other than printable ASCII
// become \xHH.
[[nodiscard]] std::string quote(std::string_view text, std::size_t most = 40);

}  // namespace gossamer
