// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/lm_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/pipeline/train/test_tiny_text.h"
#include "host/sim/clock.h"
#include "host/sim/disk.h"

namespace gossamer::pipeline {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A run of 20 steps on its own disk.
class LmRunTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSteps = 20;

  LmRunTest() { EXPECT_TRUE(disk_.make_directories("run").ok()); }

  // Trains until `stop_after` steps are done, and leaves the weights in `weights_`.
  Result<LmOutcome> train(std::uint64_t stop_after = kSteps, const std::string& fingerprint = "one") {
    return train_on(disk_, stop_after, fingerprint);
  }
  Result<LmOutcome> train_on(host::Disk& disk, std::uint64_t stop_after = kSteps,
                             const std::string& fingerprint = "one") {
    const auto model = TinyText::model();
    const LmRun run{
        .disk = disk,
        .clock = clock_,
        .model = *model,
        .windows = windows_,
        .trainer = {.batch = 6, .microbatch = 4, .schedule = {.peak = 0.02, .warmup = 2, .steps = kSteps}},
        .checkpoints = {.every_steps = 6, .steps = kSteps},
        .keep = 2,
        .directory = "run",
        .run_id = "run-1",
        .fingerprint = fingerprint};
    std::uint64_t done = 0;
    const auto on_step = [&](const engine::TrainProgress& progress) { done = progress.steps_done; };
    const auto stop_requested = [&] { return done >= stop_after; };
    const auto events = [&](std::string_view what, const EventFields&) { events_.emplace_back(what); };
    const engine::TrainHooks hooks{.on_step = on_step, .stop_requested = stop_requested, .events = events};
    auto outcome = train_lm(run, hooks);
    weights_.clear();
    for (const StageTensor& tensor : model->tensors()) {
      const auto part = std::get<std::span<double>>(tensor.weights);
      weights_.insert(weights_.end(), part.begin(), part.end());
    }
    return outcome;
  }

  host::SimDisk disk_;
  host::SimClock clock_;
  std::unique_ptr<tokens::TokenFile> file_ = TinyText::file(100);
  tokens::TokenWindows windows_ = *tokens::TokenWindows::cut(*file_, {.context = 6, .seed = 3});
  std::vector<std::string> events_;
  std::vector<double> weights_;
};

// Claim: a run that is stopped after any step and goes on ends with the bits and the loss of one that never
// stopped.
TEST_F(LmRunTest, GoesOnWithTheSameBits) {
  const auto whole = train();
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->all);
  const std::vector<double> weights = weights_;
  for (std::uint64_t stop = 1; stop < kSteps; ++stop) {
    ASSERT_TRUE(disk_.remove_all("run").ok() && disk_.make_directories("run").ok());
    const auto begun = train(stop);
    ASSERT_TRUE(begun.ok());
    EXPECT_FALSE(begun->all);
    EXPECT_EQ(begun->steps, stop);
    const auto ended = train();
    ASSERT_TRUE(ended.ok());
    EXPECT_EQ(ended->resumed_at, StepNumber(stop));
    EXPECT_EQ(ended->final_loss, whole->final_loss);
    EXPECT_EQ(weights_, weights) << stop;
  }
}

// Claim: a finished run takes no step again, and gives its weights.
TEST_F(LmRunTest, AFinishedRunIsReadBack) {
  ASSERT_TRUE(train().ok());
  const std::vector<double> weights = weights_;
  const auto again = train();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->all);
  EXPECT_EQ(again->resumed_at, StepNumber(kSteps));
  EXPECT_EQ(weights_, weights);
}

// Claim: a checkpoint of other keys is refused and named.
TEST_F(LmRunTest, RefusesACheckpointOfOtherKeys) {
  ASSERT_TRUE(train(3).ok());
  const auto other = train(kSteps, "two");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::kUsage);
}

// Claim: after a power failure at any operation of the disk the run goes on, and ends with the same bits.
TEST_F(LmRunTest, APowerFailureAtAnyOperation) {
  ASSERT_TRUE(train().ok());
  const std::vector<double> weights = weights_;
  ASSERT_TRUE(disk_.remove_all("run").ok() && disk_.make_directories("run").ok());
  disk_.restart_count({});
  ASSERT_TRUE(train().ok());
  const std::uint64_t operations = disk_.operations();
  EXPECT_GT(operations, 10U);
  for (std::uint64_t at = 0; at < operations; ++at) {
    host::SimDisk disk({.seed = at});
    ASSERT_TRUE(disk.make_directories("run").ok());
    disk.restart_count({.seed = at, .crash_at_operation = at});
    (void)train_on(disk);
    const auto found = disk.after_crash();
    ASSERT_TRUE(found->make_directories("run").ok());
    ASSERT_TRUE(train_on(*found).ok()) << at;
    EXPECT_EQ(weights_, weights) << at;
  }
}

// Claim: a disk without room costs checkpoints and not the run; but a stop that cannot keep its steps fails.
TEST_F(LmRunTest, AFullDiskCostsCheckpointsAlone) {
  disk_.restart_count({.capacity_bytes = 1000});
  const auto whole = train();
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->all);
  EXPECT_THAT(events_, Contains("checkpoint_failed"));
  EXPECT_FALSE(train(3).ok());
}

}  // namespace
}  // namespace gossamer::pipeline
