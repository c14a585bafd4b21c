// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"

namespace gossamer {
namespace {

// The standard's examples, FIPS 180-2 appendix B, however they are cut.
TEST(Sha256, StandardVectors) {
  EXPECT_EQ(to_hex(sha256(Slices())), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(to_hex(sha256("abc")), abc);
  EXPECT_EQ(to_hex(sha256({Slice::of(std::string("abc"))})), abc);
  EXPECT_EQ(to_hex(sha256({Slice::of(std::string("a")), Slice(), Slice::of(std::string("bc"))})), abc);
  EXPECT_EQ(to_hex(sha256({Slice::of(std::string(1'000'000, 'a'))})),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Secrets are equal if all of their bytes are.
TEST(Sha256, EqualSecrets) {
  EXPECT_TRUE(equal_secrets("", ""));
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  for (const char* other : {"", "ab", "abd", "bbc", "abcd"})
    EXPECT_FALSE(equal_secrets("abc", other)) << other;
}

}  // namespace
}  // namespace gossamer
