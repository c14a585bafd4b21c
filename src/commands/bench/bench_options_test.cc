// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_options.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gossamer::commands {
namespace {

enum class Shape { kRound, kFlat };
struct Thing {
  std::uint64_t rows = 96;
  double skew = 0;
  Shape shape = Shape::kFlat;
  bool open = true;
  std::vector<std::uint32_t> widths = {64, 32};
  std::string place = "/here";
};

// JSON has the values as they are, each in its own type, without texts.
TEST(BenchOptions, AreJson) {
  using settings::key;
  const settings::KeyTable<Thing> keys(
      {.listed_by = "gossamer bench thing --help"},
      {key<&Thing::rows>("rows", {.max = 99}, "of it"), key<&Thing::skew>("skew", {.max = 1}, "of it"),
       key<&Thing::shape>("shape", {.choices = {"round", "flat"}}, "of it"),
       key<&Thing::open>("open", {}, "of it"), key<&Thing::widths>("widths", {.max = 64}, "of it"),
       key<&Thing::place>("place", {}, "of it")});
  EXPECT_EQ(bench_options_json(keys.defaults()).dump(),
            R"({"rows":96,"skew":0.0,"shape":"flat","open":true,"widths":[64,32]})");
}

}  // namespace
}  // namespace gossamer::commands
