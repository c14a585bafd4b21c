// SPDX-License-Identifier: Apache-2.0
#include "run/engine_key.h"

#include <gtest/gtest.h>

namespace gossamer::run {
namespace {

// The key is taken off, with its place, and all else stays. Only the outermost one is the key.
TEST(EngineKey, IsTakenOff) {
  auto config = *settings::parse_toml("rows = 3\nengine = \"toy\"\n[part]\nengine = 4\n", "a.toml");
  const auto named = take_engine(config);
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "toy");
  EXPECT_EQ(named->where, "a.toml:2:10");
  EXPECT_EQ(config.size(), 2u);
  EXPECT_FALSE(take_engine(config).has_value());
  auto number = *settings::parse_toml("engine = 3\n", "a.toml");
  EXPECT_EQ(take_engine(number)->name, "the integer 3");
}

// The line can be read back. The engine of configs without the key has none.
TEST(EngineKey, IsWrittenAsALine) {
  EXPECT_EQ(engine_line({.name = "sparse", .unnamed = "sparse"}), "");
  EXPECT_EQ(engine_line({}), "");
  const std::string line = engine_line({.name = "toy", .unnamed = "sparse"});
  EXPECT_EQ(line.back(), '\n');
  auto config = *settings::parse_toml(line, "a.toml");
  EXPECT_EQ(take_engine(config)->name, "toy");
  EXPECT_TRUE(config.empty());
}

// The message names both engines.
TEST(EngineKey, RefusalNamesBoth) {
  const Error error = other_engine("run.toml", "toy", "sparse");
  EXPECT_EQ(error.kind, ErrorKind::kUsage);
  EXPECT_EQ(
      error.message(),
      "run.toml: the run in this directory is of engine 'toy': got a config of engine 'sparse'; expected a "
      "config of engine 'toy'; resume the run with its own config, or start a new run in another "
      "directory");
}

}  // namespace
}  // namespace gossamer::run
