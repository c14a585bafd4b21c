// SPDX-License-Identifier: Apache-2.0
#include "commands/run/checkpoint_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "host/api/files.h"
#include "host/sim/disk.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kDirectory = "/checkpoints";

// Saves the one of two sections that a node has: node 1 the first, node 2 the second.
void save_on(host::Disk& disk, std::uint64_t node, std::uint64_t step, const std::string& directory) {
  std::vector<std::byte> bytes(4);
  const tensors::NamedTensor section{node == 1 ? "first" : "second", bytes};
  EXPECT_TRUE(tensors::write_fleet_file(
                  disk, directory, NodeId(node),
                  {.next_step = StepNumber(step), .run_id = "r", .config_fingerprint = "f"}, {&section, 1})
                  .ok());
}

// A run whose state has two sections.
class CheckpointKeeperTest : public ::testing::Test {
 protected:
  CheckpointKeeperTest() { EXPECT_TRUE(disk_.make_directories(kDirectory).ok()); }

  void save(std::uint64_t node, std::uint64_t step, const std::string& directory = kDirectory) {
    save_on(disk_, node, step, directory);
  }
  [[nodiscard]] std::optional<tensors::FleetFiles> open(StepNumber step) {
    const auto nobody = [](std::string_view, EventFields) {};
    auto files = tensors::open_fleet_files(disk_, kDirectory, "f", step, nobody);
    EXPECT_TRUE(files.ok());
    return *std::move(files);
  }
  CheckpointKeeper::Options options(std::size_t keep, StepNumber start = {}) {
    return {.directory = kDirectory,
            .fingerprint = "f",
            .whole =
                [this](StepNumber step) {
                  const auto there = open(step);
                  return there && there->files.size() == 2;
                },
            .keep = keep,
            .start = start};
  }
  // The events of a look, with their steps.
  std::vector<std::string> look(CheckpointKeeper& keeper, double seconds = 5) {
    std::vector<std::string> events;
    const auto tell = [&](std::string_view name, EventFields) { events.emplace_back(name); };
    keeper.look({.next_step = {},
                 .run_id = "r",
                 .config_fingerprint = {},
                 .cost = {.train_seconds = seconds},
                 .losses = {0.5}},
                tell);
    return events;
  }
  std::vector<std::string> names() { return *disk_.list(kDirectory); }

  host::SimDisk disk_;
};

// A checkpoint counts once all parts are there. As many stay as were asked for, and older ones go, whole or
// not. The cost of the run up to then is found with it.
TEST_F(CheckpointKeeperTest, KeepsTheNewest) {
  CheckpointKeeper keeper(disk_, options(2));
  save(1, 4);
  EXPECT_THAT(look(keeper), IsEmpty());
  EXPECT_EQ(keeper.newest(), StepNumber(0));
  save(1, 8);
  save(2, 8);
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written"));
  EXPECT_THAT(look(keeper), IsEmpty());
  EXPECT_EQ(keeper.newest(), StepNumber(8));
  EXPECT_THAT(names(),
              ElementsAre("step-000000000008.1.part", "step-000000000008.2.part", "step-000000000008.run"));
  for (const std::uint64_t step : {12U, 16U}) {
    save(1, step);
    save(2, step);
  }
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written", "checkpoint_written"));
  EXPECT_EQ(names().size(), 6u);
  EXPECT_EQ(names().front(), "step-000000000012.1.part");
  const auto newest = open(StepNumber(16));
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->info.cost.train_seconds, 5);
  EXPECT_THAT(newest->info.losses, ElementsAre(0.5));
}

// Another process leads the run on. It takes up the checkpoints that the one before has found, and neither
// tells of them again nor changes what the run had cost by then. It tells of one that became whole in
// between.
TEST_F(CheckpointKeeperTest, WhatWasFoundIsNotToldAgain) {
  CheckpointKeeper before(disk_, options(3));
  for (const std::uint64_t step : {4U, 8U}) {
    save(1, step);
    save(2, step);
    EXPECT_THAT(look(before), ElementsAre("checkpoint_written"));
  }
  CheckpointKeeper keeper(disk_, options(3));
  EXPECT_THAT(look(keeper, 1), IsEmpty());
  EXPECT_EQ(keeper.newest(), StepNumber(8));
  EXPECT_EQ(open(StepNumber(8))->info.cost.train_seconds, 5);
  CheckpointKeeper later(disk_, options(3));
  save(1, 12);
  save(2, 12);
  EXPECT_THAT(look(later, 7), ElementsAre("checkpoint_written"));
  EXPECT_EQ(open(StepNumber(8))->info.cost.train_seconds, 5);
  EXPECT_EQ(open(StepNumber(12))->info.cost.train_seconds, 7);
}

// The checkpoint that the run began with is one of those that are kept.
TEST_F(CheckpointKeeperTest, KeepsTheStart) {
  save(1, 8);
  save(2, 8);
  CheckpointKeeper keeper(disk_, options(2, StepNumber(8)));
  EXPECT_EQ(keeper.newest(), StepNumber(8));
  EXPECT_THAT(look(keeper), IsEmpty());
  save(1, 12);
  save(2, 12);
  look(keeper);
  EXPECT_EQ(names().front(), "step-000000000008.1.part");
  keeper.add(StepNumber(20));
  EXPECT_EQ(names().front(), "step-000000000012.1.part");
}

// The checkpoint that the run began with stays for good where a node that comes late needs it, too.
TEST_F(CheckpointKeeperTest, KeepsTheStartForGood) {
  save(1, 8);
  save(2, 8);
  CheckpointKeeper::Options wanted = options(1, StepNumber(8));
  wanted.keeps_start = true;
  CheckpointKeeper keeper(disk_, wanted);
  for (const std::uint64_t step : {12U, 16U}) {
    save(1, step);
    save(2, step);
    look(keeper);
  }
  EXPECT_THAT(names(),
              ElementsAre("step-000000000008.1.part", "step-000000000008.2.part", "step-000000000016.1.part",
                          "step-000000000016.2.part", "step-000000000016.run"));
}

// Checkpoints that members elsewhere have delivered count like any others. Other files stay where they are.
TEST_F(CheckpointKeeperTest, TakesWhatIsDelivered) {
  ASSERT_TRUE(disk_.make_directories("/parts").ok());
  CheckpointKeeper::Options wanted = options(1);
  wanted.delivered = "/parts";
  CheckpointKeeper keeper(disk_, wanted);
  save(1, 4);
  save(2, 4, "/parts");
  for (const char* const other : {"/parts/2.steps", "/parts/step-000000000004.3.part.tmp"})
    ASSERT_TRUE(host::replace_file(disk_, other, "x").ok());
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written"));
  EXPECT_EQ(keeper.newest(), StepNumber(4));
  EXPECT_EQ(*disk_.list("/parts"), (std::vector<std::string>{"2.steps", "step-000000000004.3.part.tmp"}));
}

// Older checkpoints of one process go, and nothing else that a user keeps beside them.
TEST_F(CheckpointKeeperTest, LeavesFilesOfOtherNamesAlone) {
  for (const char* const name : {"/best.ckpt", "/step-000000000002.old.ckpt", "/step-000000000002.ckpt"})
    ASSERT_TRUE(host::replace_file(disk_, std::string(kDirectory) + name, "x").ok());
  CheckpointKeeper keeper(disk_, options(1));
  keeper.add(StepNumber(4));
  EXPECT_THAT(names(), ElementsAre("best.ckpt", "step-000000000002.old.ckpt"));
}

// A crash at any operation while a checkpoint becomes whole leaves it whole, or the one before it.
TEST(CheckpointKeeperCrash, LeavesAWholeCheckpoint) {
  const auto whole = [](host::Disk& disk, StepNumber step) {
    const auto files =
        tensors::open_fleet_files(disk, kDirectory, "f", step, [](std::string_view, EventFields) {});
    return files.ok() && *files && (*files)->files.size() == 2;
  };
  const auto rehearse = [&whole](host::SimDisk& disk, const host::SimDiskOptions& faults) {
    for (const char* const directory : {"/parts", kDirectory})
      ASSERT_TRUE(disk.make_directories(directory).ok());
    ASSERT_TRUE(disk.sync_directory("/").ok());
    for (const std::uint64_t node : {1U, 2U}) {
      save_on(disk, node, 4, kDirectory);
      save_on(disk, node, 8, "/parts");
    }
    CheckpointKeeper keeper(disk, {.directory = kDirectory,
                                   .fingerprint = "f",
                                   .whole = [&](StepNumber step) { return whole(disk, step); },
                                   .start = StepNumber(4),
                                   .delivered = "/parts"});
    disk.restart_count(faults);
    keeper.look({}, [](std::string_view, EventFields) {});
  };
  host::SimDisk undisturbed;
  rehearse(undisturbed, {});
  ASSERT_FALSE(whole(undisturbed, StepNumber(4)));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (std::uint64_t k = 0; k <= undisturbed.operations(); ++k) {
      host::SimDisk disk;
      rehearse(disk, {.seed = seed, .crash_at_operation = k});
      const auto later = disk.after_crash();
      EXPECT_TRUE(whole(*later, StepNumber(4)) || whole(*later, StepNumber(8))) << seed << ' ' << k;
    }
  }
}

// A file that could not be read, or that another has replaced, is looked at again.
TEST_F(CheckpointKeeperTest, LooksAgain) {
  bool reads = false;
  CheckpointKeeper::Options wanted = options(1);
  wanted.whole = [this, &reads](StepNumber step) { return reads && open(step)->files.size() == 2; };
  CheckpointKeeper keeper(disk_, wanted);
  save(1, 4);
  save(2, 4);
  EXPECT_THAT(look(keeper), IsEmpty());
  reads = true;
  std::vector<std::string> events;
  for (std::uint64_t i = 0; i < CheckpointKeeper::kLookAgain && events.empty(); ++i) events = look(keeper);
  EXPECT_THAT(events, ElementsAre("checkpoint_written"));
}

// A member that delivers files of steps at which nobody else saves loses its oldest ones. Files of others
// stay.
TEST_F(CheckpointKeeperTest, UnfinishedOnesAreBounded) {
  ASSERT_TRUE(disk_.make_directories("/parts").ok());
  CheckpointKeeper::Options wanted = options(1);
  wanted.delivered = "/parts";
  CheckpointKeeper keeper(disk_, wanted);
  save(2, 1, "/parts");
  for (std::uint64_t step = 1; step <= 40; ++step) {
    save(1, step, "/parts");
    look(keeper);
    EXPECT_EQ(keeper.newest(), StepNumber(1));
  }
  // The whole one, its record, and the newest of the member's own.
  EXPECT_EQ(names().size(), 3 + CheckpointKeeper::kMostUnfinished);
  EXPECT_EQ(names()[3], "step-000000000025.1.part");
  save(2, 40, "/parts");
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written"));
}

// Files of a step that is not whole are told of, and go once they are given up. Those of whole ones stay.
TEST_F(CheckpointKeeperTest, TellsOfUnfinishedSteps) {
  CheckpointKeeper keeper(disk_, options(2));
  EXPECT_EQ(keeper.unfinished(), std::nullopt);
  save(1, 4);
  save(2, 4);
  save(2, 8);
  save(1, 12);
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written"));
  EXPECT_EQ(keeper.unfinished(), StepNumber(12));
  save(2, 12);
  look(keeper);
  EXPECT_EQ(keeper.unfinished(), std::nullopt);
  save(1, 16);
  look(keeper);
  EXPECT_EQ(keeper.unfinished(), StepNumber(16));
  keeper.forget_unfinished();
  EXPECT_EQ(keeper.unfinished(), std::nullopt);
  EXPECT_TRUE(open(StepNumber(12)).has_value());
  EXPECT_FALSE(open(StepNumber(16)).has_value());
}

}  // namespace
}  // namespace gossamer::commands
