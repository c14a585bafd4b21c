// SPDX-License-Identifier: Apache-2.0
#include "settings/needed_key.h"

#include <gtest/gtest.h>

namespace gossamer::settings {
namespace {

struct Config {
  std::string data = {};
};

// A key without a value is named, with its help. With one it is fine.
TEST(NeededKey, IsNamedWhereItIsMissing) {
  const KeyTable<Config> keys({.listed_by = "--keys"},
                              {key<&Config::data>("data", {}, "path of the records")});
  const auto missing = needed(keys.defaults(), "data");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(missing.error().message(),
            "data is missing; expected data=VALUE: path of the records; add data=VALUE");
  EXPECT_TRUE(needed(keys.values({.data = "x"}), "data").ok());
}

}  // namespace
}  // namespace gossamer::settings
