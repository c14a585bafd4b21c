// SPDX-License-Identifier: Apache-2.0
//
// two_engines(): a list for tests. `first` has the preset "one", `second` the preset "two" and a workload.
#pragma once

#include <cstdint>
#include <string>

#include "commands/engine/engine_list.h"
#include "commands/engine/training.h"

namespace gossamer::commands::testing {

struct TestConfig {
  std::string of = "";
  std::uint64_t rows = 64;
};

inline const settings::KeyTable<TestConfig>& first_keys() {
  static const settings::KeyTable<TestConfig> table(
      {.listed_by = "first --keys"},
      {settings::key<&TestConfig::rows>("rows", {.min = 1, .max = 100}, "of the thing")});
  return table;
}
inline const settings::KeyTable<TestConfig>& second_keys() {
  static const settings::KeyTable<TestConfig> table(
      {.listed_by = "second --keys"},
      {settings::key<&TestConfig::of>("of", {}, "what it is made"),
       settings::key<&TestConfig::rows>("rows", {.min = 1, .max = 9}, "of the thing")});
  return table;
}

inline Result<void> allow(const settings::Values& /*values*/) { return {}; }

inline EngineEntry first_engine() {
  return {.name = "first",
          .help = "is the first",
          .presets = {{.name = "one", .help = "of the first", .toml = "rows = 50\n"}},
          .keys = &first_keys(),
          .check = allow};
}
inline EngineEntry second_engine() {
  return {.name = "second",
          .help = "is the second",
          .presets = {{.name = "two", .help = "of the second", .toml = "engine = \"second\"\nrows = 5\n"}},
          .keys = &second_keys(),
          .check = allow,
          .workload = [](const settings::Values&) { return Result<Led>(Led{}); }};
}

inline EngineList two_engines() { return EngineList({first_engine(), second_engine()}); }

}  // namespace gossamer::commands::testing
