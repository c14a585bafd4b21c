// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

// The sooner of two is the smaller one in either order. One that is missing never counts.
TEST(Sooner, TakesTheSmallerThatIsThere) {
  constexpr std::optional<Instant> kNone;
  constexpr Instant kEarly{-5};
  constexpr Instant kLate{7};
  EXPECT_EQ(sooner(kEarly, kLate), kEarly);
  EXPECT_EQ(sooner(kLate, kEarly), kEarly);
  EXPECT_EQ(sooner(kNone, kLate), kLate);
  EXPECT_EQ(sooner(kLate, kNone), kLate);
  EXPECT_EQ(sooner(kNone, kNone), kNone);
}

}  // namespace
}  // namespace gossamer
