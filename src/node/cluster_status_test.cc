// SPDX-License-Identifier: Apache-2.0
#include "node/cluster_status.h"

#include <gtest/gtest.h>

namespace gossamer::node {
namespace {

std::string first_line(const std::string& fields) {
  const auto text = status_text(R"({"run":"r","phase":"settled","epoch":3,"members":[])" + fields + "}");
  EXPECT_TRUE(text.ok());
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

// Claim: people see how far a run is, and how long yet. What is not known is left out.
TEST(ClusterStatus, SaysHowLongYet) {
  EXPECT_EQ(first_line(R"(,"step":120,"steps":400,"steps_per_second":2.0,"seconds_left":140.0)"),
            "run r  settled  epoch 3  step 120 of 400  2.0 steps/s  2 min 20 s left");
  EXPECT_EQ(first_line(R"(,"step":120,"steps":400,"steps_per_second":null,"seconds_left":null)"),
            "run r  settled  epoch 3  step 120 of 400");
  EXPECT_EQ(first_line(R"(,"step":120,"steps_per_second":2.0)"),
            "run r  settled  epoch 3  step 120  2.0 steps/s");
  EXPECT_FALSE(status_text("[]").ok());
}

}  // namespace
}  // namespace gossamer::node
