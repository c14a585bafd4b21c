// SPDX-License-Identifier: Apache-2.0
#include "commands/train/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;

// The count agrees with a run that is played through. It has a checkpoint every so often but for the last
// step, and the oldest go when more than `keep` are there.
TEST(DiskSpace, CheckpointsAtOnce) {
  for (const std::uint64_t steps : {1U, 2U, 7U, 12U}) {
    for (const std::uint64_t every : {1U, 3U, 4U, 12U, 20U}) {
      for (const std::uint32_t keep : {1U, 2U, 5U}) {
        std::uint64_t there = 0;
        std::uint64_t most = 0;
        for (std::uint64_t step = 1; step <= steps; ++step) {
          if (step % every != 0 || step == steps) continue;
          most = std::max(most, ++there);
          there = std::min<std::uint64_t>(there, keep);
        }
        const sparse_engine::CheckpointConfig when{.every_steps = every, .every_minutes = 0, .keep = keep};
        EXPECT_EQ(checkpoints_at_once({.when = when, .steps = steps}), most)
            << steps << " " << every << " " << keep;
      }
    }
  }
  const sparse_engine::CheckpointConfig minutes{.every_steps = 0, .every_minutes = 5, .keep = 2};
  EXPECT_EQ(checkpoints_at_once({.when = minutes, .steps = 9}), 2U);
  EXPECT_EQ(checkpoints_at_once({.when = minutes, .steps = 9, .kept_now = 2}), 3U);
  const sparse_engine::CheckpointConfig never{.every_steps = 0, .every_minutes = 0, .keep = 2};
  EXPECT_EQ(checkpoints_at_once({.when = never, .steps = 9}), 0U);
}

// Exactly the needed space is enough, and a byte less is not. The message has
// both figures and what would help.
TEST(DiskSpace, RunSpaceToTheByte) {
  SimMachine machine;
  sparse_engine::TrainConfig config;
  config.checkpoint = {.every_steps = 0, .every_minutes = 5, .keep = 2};
  const run::RunPaths paths("run");
  const RunSpace run{.config = config,
                     .paths = paths,
                     .steps = 100,
                     .needed = {.checkpoint = 9'000'000, .last_checkpoint = 3'000'000, .model = 15'000'000}};
  const auto fits = [&](std::uint64_t free) {
    const std::uint64_t used = host::SimDiskOptions{}.capacity_bytes - *machine.disk.free_bytes("/");
    machine.disk.restart_count({.capacity_bytes = used + free + kRunLogBytes});
    auto result = check_run_space(machine.disk, run);
    machine.disk.restart_count({});
    return result;
  };
  ASSERT_TRUE(machine.disk.make_directories("run/checkpoints").ok());
  EXPECT_TRUE(fits(27'000'000).ok());
  const auto refused = fits(26'999'999);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(refused.error().where, "run");
  EXPECT_THAT(refused.error().message(),
              HasSubstr("27.5 MB: up to 2 checkpoints of 9.0 MB, 15.0 MB for the model"));
  EXPECT_THAT(refused.error().message(), HasSubstr("checkpoint.every_minutes=0"));
  config.checkpoint.every_minutes = 0;
  EXPECT_TRUE(fits(15'000'000).ok());
  EXPECT_THAT(fits(14'999'999).error().message(), Not(HasSubstr("checkpoint.every_minutes=0")));

  // The parts that nodes have trained lie beside the model until the run is finished.
  const RunSpace fleet{
      .config = config, .paths = paths, .steps = 100, .needed = {.model = 15'000'000, .parts = 3'000'000}};
  const auto fleet_fits = [&](std::uint64_t free) {
    const std::uint64_t used = host::SimDiskOptions{}.capacity_bytes - *machine.disk.free_bytes("/");
    machine.disk.restart_count({.capacity_bytes = used + free + kRunLogBytes});
    auto result = check_run_space(machine.disk, fleet);
    machine.disk.restart_count({});
    return result;
  };
  EXPECT_TRUE(fleet_fits(18'000'000).ok());
  EXPECT_THAT(fleet_fits(17'999'999).error().message(), HasSubstr("3.0 MB for what nodes deliver"));
  ASSERT_TRUE(machine.disk.make_directories("run/nodes/parts").ok());
  write(machine.disk, "run/nodes/parts/part-2-100", std::string(3'000'000, 'x'));
  EXPECT_TRUE(fleet_fits(15'000'000).ok());
  ASSERT_TRUE(machine.disk.remove_all("run/nodes").ok());

  // In a resumed run, files that are there already need no free space. After the last step
  // only the model is left to write.
  config.checkpoint.every_minutes = 5;
  write(machine.disk, "run/checkpoints/step-000000000040.ckpt", std::string(9'000'000, 'x'));
  EXPECT_TRUE(fits(18'000'000).ok());
  EXPECT_FALSE(fits(17'999'999).ok());
  // Neither its place nor its keys can be others: only room helps.
  RunSpace resumed = run;
  resumed.begins = false;
  machine.disk.restart_count({.capacity_bytes = 1});
  const std::string helps = check_run_space(machine.disk, resumed).error().message();
  machine.disk.restart_count({});
  EXPECT_THAT(helps, HasSubstr("; free 18.5 MB there"));
  EXPECT_THAT(helps, Not(HasSubstr("--out")));
  EXPECT_THAT(helps, Not(HasSubstr("every_minutes")));
  write(machine.disk, "run/checkpoints/step-000000000100.ckpt", std::string(3'000'000, 'x'));
  EXPECT_TRUE(fits(15'000'000).ok());
  EXPECT_FALSE(fits(14'999'999).ok());
  // The remains of a model after a crash make way for the next try.
  ASSERT_TRUE(machine.disk.make_directories("run/model.tmp").ok());
  write(machine.disk, "run/model.tmp/shard", std::string(1'000'000, 'x'));
  EXPECT_TRUE(fits(14'000'000).ok());
  EXPECT_FALSE(fits(13'999'999).ok());
}

// A disk that cannot tell its free space refuses nothing.
TEST(DiskSpace, UnknownIsEnough) {
  SimMachine machine;
  machine.disk.restart_count({.capacity_bytes = 0, .fail_at_operation = 0});
  const sparse_engine::TrainConfig config;
  const run::RunPaths paths("run");
  EXPECT_TRUE(
      check_run_space(machine.disk, {.config = config, .paths = paths, .steps = 1, .needed = {.model = 1}})
          .ok());
}

}  // namespace
}  // namespace gossamer::commands
