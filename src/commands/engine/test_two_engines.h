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
  std::string engine = "second";
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
      {settings::key<&TestConfig::engine>("engine", {}, "of the config"),
       settings::key<&TestConfig::rows>("rows", {.min = 1, .max = 9}, "of the thing")});
  return table;
}

inline EngineList two_engines() {
  return EngineList({{.name = "first",
                      .help = "is the first",
                      .presets = {{.name = "one", .help = "of the first", .toml = "rows = 50\n"}},
                      .keys = &first_keys()},
                     {.name = "second",
                      .help = "is the second",
                      .presets = {{.name = "two", .help = "of the second", .toml = "rows = 5\n"}},
                      .keys = &second_keys(),
                      .workload = [](const settings::Values&) { return Result<Led>(Led{}); }}});
}

}  // namespace gossamer::commands::testing
