// SPDX-License-Identifier: Apache-2.0
//
// Whether bytes are UTF-8. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace gossamer::data {

// The position, from 0, of the first byte with which no character of UTF-8 begins; the text's size if all is
// UTF-8.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);

}  // namespace gossamer::data
