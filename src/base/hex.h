// SPDX-License-Identifier: Apache-2.0
//
// Bytes as hexadecimal digits: ids, fingerprints and hashes in texts. Thread rule: plain functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gossamer {

// Lower case, two digits a byte.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string to_hex(std::string_view bytes);
// Whether `text` is what to_hex() writes for so many bytes.
[[nodiscard]] bool is_hex(std::string_view text, std::size_t bytes);

}  // namespace gossamer
