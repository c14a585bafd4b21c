// SPDX-License-Identifier: Apache-2.0
#include "host/api/digest.h"

#include <gtest/gtest.h>

namespace gossamer::host {
namespace {

// The two shortest examples of FIPS 180-4's test vectors.
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Secrets are equal if all of their bytes are.
TEST(Digest, EqualSecrets) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "bbc", "abcd"})
    EXPECT_FALSE(equal_secrets("abc", other)) << other;
}

// Only what to_hex() writes is hexadecimal.
TEST(Digest, Hex) {
  EXPECT_EQ(to_hex(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_TRUE(is_hex("007fff", 3));
  for (const char* bad : {"", "007ff", "007FFF", "007ffg", "007fff0"}) EXPECT_FALSE(is_hex(bad, 3)) << bad;
}

}  // namespace
}  // namespace gossamer::host
