// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace gossamer {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') {
    return Error{.kind = ErrorKind::kBadData,
                 .where = "numbers.txt:3:1",
                 .what = "cannot read a digit",
                 .got = std::string("'") + c + "'",
                 .expected = "0..9",
                 .fix = "mend the line"};
  }
  return c - '0';
}

// A message has all five parts in the documented order; missing parts leave no separators behind.
TEST(Result, ErrorMessageHasFiveParts) {
  EXPECT_EQ(parse_digit('x').error().message(),
            "numbers.txt:3:1: cannot read a digit: got 'x'; expected 0..9; mend the line");
  EXPECT_EQ((Error{.what = "disk full"}).message(), "disk full");
  EXPECT_EQ((Error{.where = "a", .what = "b", .fix = "c"}).message(), "a: b; c");
}

// The value comes out by reference or by move; move-only types work.
TEST(Result, HoldsValue) {
  Result<int> digit = parse_digit('7');
  ASSERT_TRUE(digit.ok());
  EXPECT_EQ(*digit, 7);
  Result<std::unique_ptr<int>> owned = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(owned);
  EXPECT_EQ(*taken, 3);
}

// Result<void> is ok by default; exit statuses follow the kinds.
TEST(Result, VoidAndKinds) {
  EXPECT_TRUE(Result<void>().ok());
  const Result<void> refused = Error{.kind = ErrorKind::kRefused, .what = "no"};
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(static_cast<int>(refused.error().kind), 4);
  EXPECT_STREQ(name(ErrorKind::kBadData), "bad-data");
}

// Taking the value of an error is a bug of ours and says which error it was.
TEST(ResultDeathTest, ValueOfErrorAborts) {
  Result<int> bad = parse_digit('x');
  EXPECT_DEATH(static_cast<void>(*bad), "cannot read a digit");
}

}  // namespace
}  // namespace gossamer
