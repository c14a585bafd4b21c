// SPDX-License-Identifier: Apache-2.0
//
// The rule for names in plain text (items of sessions, words): UTF-8 without control characters. Private to
// learn/data. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "learn/data/read/bad_lines.h"

namespace gossamer::data {

// The first byte of a line that no name may hold; tabs are left to the caller.
[[nodiscard]] std::optional<BadLine> find_bad_byte(std::string_view line);

}  // namespace gossamer::data
