// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), by OpenSSL: names content by what it is. A target of its own (gossamer::sha256), so
// that only who needs it links libcrypto.
//
// Thread rule: plain functions.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/slice.h"

namespace gossamer {

using Sha256 = std::array<std::byte, 32>;

// The hash of the bytes of all slices, one after another.
[[nodiscard]] Sha256 sha256(const Slices& bytes);

// 64 hexadecimal digits.
[[nodiscard]] std::string to_hex(const Sha256& hash);

}  // namespace gossamer
