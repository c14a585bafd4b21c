// SPDX-License-Identifier: Apache-2.0
//
// Bytes as people read them. Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <string>

namespace gossamer {

// "812 B", "3.2 MB", "1.5 GB": powers of 1000.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

}  // namespace gossamer
