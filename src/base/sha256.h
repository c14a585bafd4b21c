// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), by OpenSSL: names content by what it is. And comparing secrets. A target of its own
// (gossamer::sha256), so that only who needs it links libcrypto.
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

// In a time that does not tell how far they agree, if their sizes do.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace gossamer
