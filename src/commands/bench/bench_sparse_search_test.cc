// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_sparse_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

BenchSparseSearch small_search() {
  BenchSparseSearch options;
  for (const char* text : {"labels=500", "hidden=32", "top=3", "batch=8", "queries=20", "singles=2"}) {
    EXPECT_TRUE(bench_sparse_search_keys().set_word(options, text).ok()) << text;
  }
  return options;
}

double score(const BenchSparseSearch& options, int workers = 2) {
  run::testing::SimMachine machine;
  host::SimCompute compute({.workers = workers});
  const run::NodeHost host{.disk = machine.disk,
                           .clock = machine.clock,
                           .compute = compute,
                           .kernels = kernels::kernels_for(kernels::best_isa()),
                           .console = machine.console};
  const auto result = bench_sparse_search(host, options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->score : 0;
}

// The seed alone decides rows and queries. Neither workers nor the size of the blocks change what is found.
TEST(BenchSparseSearch, IsReproducible) {
  const double first = score(small_search());
  EXPECT_EQ(score(small_search(), 3), first);
  BenchSparseSearch options = small_search();
  options.batch = 20;
  EXPECT_EQ(score(options), first);
  options.seed = 2;
  EXPECT_NE(score(options), first);
}

// The search finds the best rows. Among more rows, which include the others, the best score higher. More
// results from the same rows score lower, down to all rows, with a mean near 0.
TEST(BenchSparseSearch, FindsTheBest) {
  BenchSparseSearch options = small_search();
  const double best = score(options);
  options.labels = 50;
  EXPECT_LT(score(options), best);
  options = small_search();
  options.top = 6;
  EXPECT_LT(score(options), best);
  options.top = 500;
  EXPECT_LT(std::abs(score(options)), 0.1 * best);
}

// The JSON result has its options. Messages about wrong options name the nearest or the range.
// Shapes that do not fit are refused.
TEST(BenchSparseSearch, OptionsAndRefusals) {
  run::testing::SimMachine machine;
  const run::NodeHost host = machine.host_with(machine.disk);
  const auto json = nlohmann::json::parse(to_json({.single_wall_ms = 2.5}, small_search(), host));
  EXPECT_EQ(json["single_wall_ms"], 2.5);
  EXPECT_EQ(json["options"]["labels"], 500);
  EXPECT_EQ(json["threads"], 2);
  BenchSparseSearch options = small_search();
  EXPECT_THAT(bench_sparse_search_keys().set_word(options, "lables=3").error().expected,
              HasSubstr("'labels'"));
  EXPECT_THAT(bench_sparse_search_keys().set_word(options, "batch=257").error().expected,
              HasSubstr("1..256"));
  EXPECT_THAT(bench_sparse_search_keys().set_word(options, "hidden=40").error().expected,
              HasSubstr("a multiple of 16"));
  EXPECT_THAT(settings::help_lines(bench_sparse_search_keys().values(options)), HasSubstr("labels=500"));
  options.labels = 4'000'000'000;
  EXPECT_EQ(bench_sparse_search(host, options).error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace gossamer::commands
