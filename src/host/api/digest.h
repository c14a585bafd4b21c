// SPDX-License-Identifier: Apache-2.0
//
// SHA-256, and comparing secrets. The same on every host; here because a library computes it. Thread rule:
// plain functions.
#pragma once

#include <string>
#include <string_view>

namespace gossamer::host {

// 32 bytes.
[[nodiscard]] std::string sha256(std::string_view bytes);

// In a time that does not tell how far they agree, if their sizes do.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

// Lower case, two digits a byte.
[[nodiscard]] std::string to_hex(std::string_view bytes);
// Whether `text` is what to_hex() writes for so many bytes.
[[nodiscard]] bool is_hex(std::string_view text, std::size_t bytes);

}  // namespace gossamer::host
