// SPDX-License-Identifier: Apache-2.0
//
// Texts of others, which may hold anything and be of any length, made fit for a line on a terminal. Thread
// rule: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gossamer {

// Enough of what another machine says.
inline constexpr std::size_t kLineBytes = 300;
inline constexpr std::size_t kAllBytes = std::string_view::npos;

// At most so many bytes of it, '?' for what is not printable ASCII: an escape may move the cursor.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = kLineBytes);

// All of it, with \xHH for what would move the cursor, ring the bell or end the line; UTF-8 stays.
[[nodiscard]] std::string visible(std::string_view text);

// In quotes, at most so many bytes of it and "..." for the rest, other bytes than printable ASCII as \xHH.
[[nodiscard]] std::string quote(std::string_view text, std::size_t most = 40);

}  // namespace gossamer
