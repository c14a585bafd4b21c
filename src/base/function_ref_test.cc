// SPDX-License-Identifier: Apache-2.0
#include "base/function_ref.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

int apply(FunctionRef<int(int)> f, int x) { return f(x); }

// Lambdas with state are called in place.
TEST(FunctionRef, CallsWhatItBorrows) {
  int calls = 0;
  const auto add = [&calls](int x) {
    ++calls;
    return x + 1;
  };
  EXPECT_EQ(apply(add, 4), 5);
  EXPECT_EQ(apply(add, 5), 6);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace gossamer
