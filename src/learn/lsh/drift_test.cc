// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/drift.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"
#include "learn/lsh/test_random_rows.h"

namespace gossamer::lsh {
namespace {

// A row is never due late. As long as it is not due, the exact sum of its moves is below its allowance,
// however many roundings went into it. It is not due much too early either.
TEST(DriftLedger, IsNeverLate) {
  Rng rng(1, Purpose::kTest);
  for (const float share : {0.3F, 1e-3F, 1e-5F}) {
    for (int trial = 0; trial < 10; ++trial) {
      DriftLedger ledger(2);
      const float allowance = 0.5F + rng.uniform();
      ledger.reset(1, allowance);
      double sum = 0;
      while (!ledger.due(1)) {
        ASSERT_LT(sum, static_cast<double>(allowance));
        const float length = share * rng.uniform();
        sum += static_cast<double>(length);
        ledger.moved(1, length);
      }
      EXPECT_GT(sum, 0.97 * static_cast<double>(allowance));
    }
  }
}

// Rows are due at first, and after a move of unknown length; an infinite allowance outlasts every known move.
TEST(DriftLedger, TakesTheExtremes) {
  DriftLedger ledger(3);
  EXPECT_TRUE(ledger.due(0));
  for (const float length : {kInfinity, std::numeric_limits<float>::quiet_NaN(), 2.0F}) {
    ledger.reset(0, 1.0F);
    EXPECT_FALSE(ledger.due(0));
    ledger.moved(0, length);
    EXPECT_TRUE(ledger.due(0)) << length;
  }
  ledger.reset(2, kInfinity);
  ledger.moved(2, 1e30F);
  EXPECT_FALSE(ledger.due(2));
  ledger.moved(2, kInfinity);
  EXPECT_TRUE(ledger.due(2));
  EXPECT_TRUE(ledger.due(1));
}

}  // namespace
}  // namespace gossamer::lsh
