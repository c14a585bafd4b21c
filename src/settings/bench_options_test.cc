// SPDX-License-Identifier: Apache-2.0
#include "settings/bench_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gossamer::node {
namespace {

using ::testing::HasSubstr;

struct Thing {
  std::uint64_t rows = 64;
  double skew = 0.5;
};
BenchOptions table(Thing& thing) {
  return {.command = "bench thing",
          .options = {{"rows", "of the thing", &thing.rows, 32, 4096, 32},
                      {"skew", "of its ids", &thing.skew, 0, 0.99}},
          .others = {"shape"}};
}

// Values in range are set, both ends included; each place gets its own.
TEST(BenchOptions, SetsWhatIsInRange) {
  Thing thing;
  for (const char* text : {"rows=4096", "rows=32", "skew=0.99", "skew=0"}) {
    EXPECT_TRUE(set_bench_option(table(thing), text).ok()) << text;
  }
  EXPECT_EQ(thing.rows, 32U);
  EXPECT_EQ(thing.skew, 0);
}

// A text that is no number of the range is refused. The error says what is expected, and nothing changes.
TEST(BenchOptions, RefusesTheRest) {
  Thing thing;
  for (const char* text : {"rows=31", "rows=48", "rows=8192", "rows=-32", "rows=64x", "rows=6.4e1",
                           "rows=", "rows", "skew=1", "skew=nan", "skew=-0.1", "skew= 0.1", "=64", ""}) {
    EXPECT_EQ(set_bench_option(table(thing), text).error().kind, ErrorKind::kUsage) << text;
  }
  EXPECT_EQ(thing.rows, 64U);
  EXPECT_EQ(thing.skew, 0.5);
  EXPECT_EQ(set_bench_option(table(thing), "rows=48").error().expected,
            "an integer 32..4096, a multiple of 32");
  EXPECT_EQ(set_bench_option(table(thing), "skew=1").error().expected, "a number 0..0.99");
  EXPECT_THAT(set_bench_option(table(thing), "skew=1").error().fix, HasSubstr("gossamer bench thing --help"));
}

// The error for an unknown name tells the nearest known one, options of other kinds included.
TEST(BenchOptions, NamesTheNearest) {
  Thing thing;
  EXPECT_THAT(set_bench_option(table(thing), "row=64").error().expected, HasSubstr("'rows'"));
  EXPECT_THAT(set_bench_option(table(thing), "shap=64").error().expected, HasSubstr("'shape'"));
}

// Help and JSON show the values as they are.
TEST(BenchOptions, ShowsValues) {
  Thing thing;
  thing.rows = 96;
  EXPECT_THAT(bench_options_help(table(thing)),
              HasSubstr("rows=96                    of the thing, 32..4096\n"));
  EXPECT_EQ(bench_options_json(table(thing)).dump(), R"({"rows":96,"skew":0.5})");
}

}  // namespace
}  // namespace gossamer::node
