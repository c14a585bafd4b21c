// SPDX-License-Identifier: Apache-2.0
#include "exact/floating_modes.h"

#include <gtest/gtest.h>

#include <limits>

namespace gossamer::exact {
namespace {

constexpr unsigned kFlushes = 0x8040U;
constexpr unsigned kRoundsUp = 0x4000U;

// Claim: denormal numbers live and results are rounded to nearest while an object lives, whatever a library
// has set; afterwards the thread has the modes of the library again.
TEST(FloatingModes, AreThoseOfIeeeForATime) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushes | kRoundsUp);
  volatile float least = std::numeric_limits<float>::min();
  volatile float tiny = 1e-30F;
  volatile float one = 1;
  const float flushed = least * 0.5F;
  const float up = one + tiny;
  float kept = 0;
  float nearest = 0;
  {
    const FloatingModes modes;
    kept = least * 0.5F;
    nearest = one + tiny;
  }
  const float flushed_again = least * 0.5F;
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(flushed, 0);
  EXPECT_GT(up, 1);
  EXPECT_GT(kept, 0);
  EXPECT_EQ(nearest, 1);
  EXPECT_EQ(flushed_again, 0);
  EXPECT_EQ(after & (kFlushes | kRoundsUp), kFlushes | kRoundsUp);
}

}  // namespace
}  // namespace gossamer::exact
