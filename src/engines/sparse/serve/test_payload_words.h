// SPDX-License-Identifier: Apache-2.0
//
// Numbers as the bytes of a payload, for tests that make up what a peer sends. Not part of the product.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gossamer::sparse_engine::testing {

inline std::string words(const std::vector<std::uint32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint32_t)};
}

}  // namespace gossamer::sparse_engine::testing
