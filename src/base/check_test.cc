// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gossamer {
namespace {

// A broken CHECK names its condition, the operands with their values, and the file.
TEST(CheckDeathTest, PrintsConditionOperandsAndPlace) {
  const int rows = 4096;
  const int expected = 4032;
  EXPECT_DEATH(CHECK(rows == expected, rows, expected),
               "CHECK failed: rows == expected \\(rows, expected = 4096, 4032\\) at .*check_test.cc");
  EXPECT_DEATH(CHECK(rows < 0), "CHECK failed: rows < 0 at ");
}

// Where a context was given, the message ends with it; afterwards it does not.
TEST(CheckDeathTest, SaysItsContext) {
  {
    const CheckContext context("seed 17");
    EXPECT_DEATH(CHECK(false), "CHECK failed: false .*\nseed 17");
  }
  EXPECT_EXIT(CHECK(false), ::testing::KilledBySignal(SIGABRT), "check_test.cc:[0-9]+\n$");
}

// A CHECK that holds evaluates its operands' formatting never, its condition once.
TEST(Check, HoldsSilently) {
  int evaluated = 0;
  CHECK(++evaluated == 1, evaluated);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace gossamer
