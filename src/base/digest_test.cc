// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace gossamer {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A digest is XXH3 of all bytes, however they are cut into pieces, and before all of them have come.
TEST(Digest, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7 % 251);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{256}, std::size_t{5000}}) {
    Digest digest;
    for (std::size_t begin = 0; begin < text.size(); begin += piece) {
      digest.add(bytes_of(text).subspan(begin, std::min(piece, text.size() - begin)));
      const std::size_t so_far = std::min(begin + piece, text.size());
      ASSERT_EQ(digest.value(), XXH3_64bits(text.data(), so_far)) << "pieces of " << piece;
    }
  }
  EXPECT_EQ(Digest().value(), XXH3_64bits(nullptr, 0));
}

}  // namespace
}  // namespace gossamer
