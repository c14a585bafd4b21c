// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace gossamer {
namespace {

// Only what to_hex() writes is hexadecimal.
TEST(Hex, RoundTrip) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(to_hex(std::array{std::byte{0x1a}, std::byte{0x0b}}), "1a0b");
  EXPECT_TRUE(is_hex("007fff", 3));
  for (const char* bad : {"", "007ff", "007FFF", "007ffg", "007fff0"}) EXPECT_FALSE(is_hex(bad, 3)) << bad;
}

}  // namespace
}  // namespace gossamer
