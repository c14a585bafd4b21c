// SPDX-License-Identifier: Apache-2.0
#include "base/human_bytes.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

// Numbers keep their meaning at every unit's edge.
TEST(HumanBytes, Units) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(999'949), "999.9 kB");
  EXPECT_EQ(human_bytes(999'951), "1.0 MB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.4 EB");
}

}  // namespace
}  // namespace gossamer
