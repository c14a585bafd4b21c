// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), by OpenSSL, to name content by what it is; and the comparison of secrets. It is a
// target of its own (gossamer::sha256), so that only its users link libcrypto.
//
// Thread rule: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/slice.h"

namespace gossamer {

using Sha256 = std::array<std::byte, 32>;

// The hash of the bytes of all slices, one after another.
[[nodiscard]] Sha256 sha256(const Slices& bytes);
[[nodiscard]] Sha256 sha256(std::string_view bytes);

// Compares in a time that does not tell how many bytes agree. Texts of different sizes are told apart at
// once.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace gossamer
