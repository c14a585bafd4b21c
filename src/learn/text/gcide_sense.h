// SPDX-License-Identifier: Apache-2.0
//
// One sense of a dictionary entry cleaned of its markup; rules in gcide.h. Private to learn/text.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gossamer::text {

// Bytes of a sense's number at the front ("12.", "(b)"), 0 if there is none.
[[nodiscard]] std::size_t sense_mark(std::string_view text);

// The sense alone; empty if it says nothing or only refers to another entry.
[[nodiscard]] std::string sense_text(std::string_view piece);

}  // namespace gossamer::text
