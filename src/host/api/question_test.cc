// SPDX-License-Identifier: Apache-2.0
#include "host/api/question.h"

#include <gtest/gtest.h>

namespace gossamer::host {
namespace {

// Only short names of letters are methods: they stand in a path.
TEST(Question, MethodNames) {
  for (const char* good : {"Enroll", "a", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"})
    EXPECT_TRUE(is_method(good)) << good;
  for (const char* bad : {"", "a/b", "a b", "n1", "a.b", "\xc3\xa4", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"})
    EXPECT_FALSE(is_method(bad)) << bad;
}

// An error that travels keeps its kind, and each part up to the limit, without control characters.
TEST(Question, ErrorsAreMadeFit) {
  const Error error = made_fit({.kind = ErrorKind::kRefused,
                                .where = "a\x1b[2Jb",
                                .what = std::string(5000, 'w'),
                                .got = "\n\t\x7f",
                                .expected = "caf\xc3\xa9",
                                .fix = std::string(kMaxErrorPartBytes, 'f')});
  EXPECT_EQ(error.kind, ErrorKind::kRefused);
  EXPECT_EQ(error.where, "a?[2Jb");
  EXPECT_EQ(error.what, std::string(kMaxErrorPartBytes, 'w'));
  EXPECT_EQ(error.got, "???");
  EXPECT_EQ(error.expected, "caf\xc3\xa9");
  EXPECT_EQ(error.fix, std::string(kMaxErrorPartBytes, 'f'));
}

}  // namespace
}  // namespace gossamer::host
