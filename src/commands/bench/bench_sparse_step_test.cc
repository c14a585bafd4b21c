// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_sparse_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

class SilentConsole final : public run::Console {
 public:
  void write(std::string_view /*text*/) override {}
  [[nodiscard]] bool terminal() const override { return false; }
  [[nodiscard]] int columns() const override { return 80; }
};

struct Bench {
  host::SimDisk disk;
  host::SimClock clock;
  host::SimCompute compute{
      host::SimComputeOptions{.workers = 2, .memory_limit_bytes = std::uint64_t{1} << 31}};
  SilentConsole console;
  run::NodeHost host{.disk = disk,
                     .clock = clock,
                     .compute = compute,
                     .kernels = kernels::kernels_for(kernels::Isa::kScalar),
                     .console = console};
};

BenchSparseStep small_step() {
  BenchSparseStep options;
  for (const char* text : {"features=500", "nnz=10", "labels=900", "labels_per_row=3", "hidden=32",
                           "batch=16", "steps=3", "warmup=1"}) {
    EXPECT_TRUE(bench_sparse_step_keys().set_word(options, text).ok()) << text;
  }
  return options;
}

// The number of active rows lies between the labels of one record and all labels of a
// batch. Draws of negatives add to it.
TEST(BenchSparseStep, CountsActiveRows) {
  Bench bench;
  BenchSparseStep options = small_step();
  auto plain = bench_sparse_step(bench.host, options);
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_GE(plain->active_rows, 3);
  EXPECT_LE(plain->active_rows, 48);
  EXPECT_GE(plain->unique_features, 10);
  EXPECT_LE(plain->unique_features, 160);
  EXPECT_EQ(plain->parameters, 1400U * 32 + 900);
  options.sampled = 100;
  auto more = bench_sparse_step(bench.host, options);
  ASSERT_TRUE(more.ok());
  EXPECT_GT(more->active_rows, plain->active_rows + 50);
}

// A millisecond passes between any two looks.
class TickingClock final : public host::Clock {
 public:
  [[nodiscard]] Instant now() const override {
    return Instant() + from_milliseconds(static_cast<double>(++looks_));
  }
  [[nodiscard]] Duration process_cpu() const override { return now() - Instant(); }
  [[nodiscard]] double wall_seconds() const override { return 0; }

 private:
  mutable std::uint64_t looks_ = 0;
};

// Claim: times are those of one step, however many are measured. Each step looks at the clock as often as the
// next one, so the times of 20 steps are those of 10, but for the looks around all of them.
TEST(BenchSparseStep, TimesAreOfOneStep) {
  Bench bench;
  std::vector<BenchSparseStepResult> results;
  for (const std::uint64_t steps : {10U, 20U}) {
    const TickingClock clock;
    const run::NodeHost host{.disk = bench.disk,
                             .clock = clock,
                             .compute = bench.compute,
                             .kernels = kernels::kernels_for(kernels::Isa::kScalar),
                             .console = bench.console};
    BenchSparseStep options = small_step();
    options.steps = steps;
    const auto result = bench_sparse_step(host, options);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_GT(result->phases_ms.forward, 0);
    EXPECT_LE(result->phases_ms.forward, result->wall_ms_per_step);
    results.push_back(*result);
  }
  EXPECT_NEAR(results[0].wall_ms_per_step, results[1].wall_ms_per_step, 0.3);
  EXPECT_NEAR(results[0].cpu_ms_per_step, results[1].cpu_ms_per_step, 0.3);
  EXPECT_NEAR(results[0].phases_ms.forward, results[1].phases_ms.forward, 0.3);
}

// Further hidden layers are measured too, and count among the parameters.
TEST(BenchSparseStep, TakesDenseLayers) {
  Bench bench;
  BenchSparseStep options = small_step();
  ASSERT_TRUE(bench_sparse_step_keys().set_word(options, "dense=64,16").ok());
  EXPECT_FALSE(bench_sparse_step_keys().set_word(options, "dense=60").ok());
  const auto result = bench_sparse_step(bench.host, options);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->parameters, 500U * 32 + 33 * 64 + 65 * 16 + 900 * 17);
  EXPECT_EQ(nlohmann::json::parse(to_json(*result, options, bench.host))["options"]["dense"][1], 16);
}

// Rows in the order of shards have the same number, and learn the same.
TEST(BenchSparseStep, TakesShards) {
  Bench bench;
  BenchSparseStep options = small_step();
  const auto one = bench_sparse_step(bench.host, options);
  ASSERT_TRUE(bench_sparse_step_keys().set_word(options, "shards=16").ok());
  const auto many = bench_sparse_step(bench.host, options);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_EQ(many->active_rows, one->active_rows);
  EXPECT_NEAR(many->loss, one->loss, 1e-5 * one->loss);
  EXPECT_EQ(nlohmann::json::parse(to_json(*many, options, bench.host))["options"]["shards"], 16);
}

// Every kind of moments is measured, and the result names it. The error for an unknown kind has the name that
// was typed and the known kinds.
TEST(BenchSparseStep, TakesMoments) {
  Bench bench;
  std::vector<double> losses;
  for (const std::string kind : {"element", "embedding-block", "block"}) {
    BenchSparseStep options = small_step();
    ASSERT_TRUE(bench_sparse_step_keys().set_word(options, "moments=" + kind).ok());
    const auto result = bench_sparse_step(bench.host, options);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(nlohmann::json::parse(to_json(*result, options, bench.host))["options"]["moments"], kind);
    losses.push_back(result->loss);
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NE(losses[1], losses[2]);
  BenchSparseStep options;
  const auto refused = bench_sparse_step_keys().set_word(options, "moments=rows");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("element, embedding-block or block"));
  EXPECT_THAT(refused.error().message(), ::testing::Not(HasSubstr("optimizer.moments")));
}

// The same seed gives the same records and so the same loss.
TEST(BenchSparseStep, IsReproducible) {
  Bench bench;
  const auto first = bench_sparse_step(bench.host, small_step());
  const auto second = bench_sparse_step(bench.host, small_step());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first).loss, (*second).loss);
  const auto json = nlohmann::json::parse(to_json(*first, small_step(), bench.host));
  EXPECT_EQ(json["options"]["labels"], 900);
  EXPECT_EQ(json["isa"], "scalar");
}

// Messages about wrong options name the nearest or the range. Shapes that cannot be made or held are refused.
TEST(BenchSparseStep, RefusesNonsense) {
  BenchSparseStep options;
  EXPECT_THAT(bench_sparse_step_keys().set_word(options, "lables=3").error().expected, HasSubstr("'labels'"));
  EXPECT_THAT(bench_sparse_step_keys().set_word(options, "steps=0").error().expected, HasSubstr("1.."));
  EXPECT_FALSE(bench_sparse_step_keys().set_word(options, "steps").ok());
  EXPECT_FALSE(bench_sparse_step_keys().set_word(options, "label_zipf=1").ok());
  Bench bench;
  options = small_step();
  options.nnz = 251;
  EXPECT_EQ(bench_sparse_step(bench.host, options).error().kind, ErrorKind::kUsage);
  options = small_step();
  options.labels = 4'000'000'000;
  EXPECT_EQ(bench_sparse_step(bench.host, options).error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace gossamer::commands
