// SPDX-License-Identifier: Apache-2.0
#include "commands/run/led_configuration.h"

#include <gtest/gtest.h>

namespace gossamer::commands {
namespace {

// A member reads what its lead tells, whatever characters paths and keys have. Other bytes are refused.
TEST(LedConfiguration, CrossesAsBytes) {
  const LedConfiguration told{.run = "0a1b",
                              .checkpoints = "/a \"b\"/runs",
                              .fingerprint = "numbers.txt 4",
                              .start = StepNumber(20),
                              .steps = 1000,
                              .keys = "engine = \"toy\" # of this config\n[part]\nrows = 3\n"};
  const auto read = read_led_configuration(led_configuration_bytes(told));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, told);
  EXPECT_EQ(*read_led_configuration(led_configuration_bytes({})), LedConfiguration());
  for (const char* const bad : {"x", "run = 3\n", "start = -1\n", "other = \"x\"\n"}) {
    const auto refused = read_led_configuration(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  }
}

}  // namespace
}  // namespace gossamer::commands
