// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/checkpoint_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "commands/train_fleet/test_checkpointed_run.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointKeeperTest : public testing::CheckpointedRunTest {
 protected:
  // Node 1 has the columns, node 2 the rows.
  void save(std::uint64_t node, std::uint64_t step, const std::string& directory = kDirectory) {
    sparse::NetworkPart part = sparse_engine::no_part(shape_);
    if (node == 1) part.columns = {0, 32};
    if (node == 2) part = sparse_engine::with_shards(part, shape_, {0});
    sparse::Network network(shape_.network, part, run_.moments);
    EXPECT_TRUE(sparse_engine::PartCopy(shape_, run_.moments, network)
                    .write(disk_, directory, NodeId(node),
                           {.next_step = StepNumber(step), .run_id = "r", .config_fingerprint = "f"})
                    .ok());
  }
  // The events of a look, with their steps.
  std::vector<std::string> look(CheckpointKeeper& keeper) {
    std::vector<std::string> events;
    const auto tell = [&](std::string_view name, EventFields) { events.emplace_back(name); };
    keeper.look({.next_step = {},
                 .run_id = "r",
                 .config_fingerprint = {},
                 .cost = {.train_seconds = 5},
                 .losses = {0.5}},
                tell);
    return events;
  }
  std::vector<std::string> names() { return *disk_.list(kDirectory); }
};

// A checkpoint counts once all parts are there. As many stay as were asked for, and older ones go, whole or
// not. The cost of the run up to then is found with it.
TEST_F(CheckpointKeeperTest, KeepsTheNewest) {
  CheckpointKeeper keeper(disk_, {.directory = kDirectory, .run = run_, .keep = 2, .start = {}});
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
  for (const std::uint64_t step : {12, 16}) {
    save(1, step);
    save(2, step);
  }
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written", "checkpoint_written"));
  EXPECT_EQ(names().size(), 6u);
  EXPECT_EQ(names().front(), "step-000000000012.1.part");
  const auto nobody = [](std::string_view, EventFields) {};
  const auto newest = sparse_engine::FleetCheckpoint::open_newest(
      disk_, kDirectory, run_, sparse_engine::FleetCheckpoint::Verify::kAll, nobody);
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->step(), StepNumber(16));
  EXPECT_EQ((*newest)->info().cost.train_seconds, 5);
  EXPECT_THAT((*newest)->info().losses, ElementsAre(0.5));
}

// The checkpoint that the run began with is one of those that are kept.
TEST_F(CheckpointKeeperTest, KeepsTheStart) {
  save(1, 8);
  save(2, 8);
  CheckpointKeeper keeper(disk_, {.directory = kDirectory, .run = run_, .keep = 2, .start = StepNumber(8)});
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
  CheckpointKeeper keeper(
      disk_, {.directory = kDirectory, .run = run_, .keep = 1, .start = StepNumber(8), .keeps_start = true});
  for (const std::uint64_t step : {12, 16}) {
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
  CheckpointKeeper keeper(
      disk_, {.directory = kDirectory, .run = run_, .keep = 1, .start = {}, .delivered = "/parts"});
  save(1, 4);
  save(2, 4, "/parts");
  for (const char* const other : {"/parts/2.steps", "/parts/step-000000000004.3.part.tmp"})
    ASSERT_TRUE(host::replace_file(disk_, other, "x").ok());
  EXPECT_THAT(look(keeper), ElementsAre("checkpoint_written"));
  EXPECT_EQ(keeper.newest(), StepNumber(4));
  EXPECT_EQ(*disk_.list("/parts"), (std::vector<std::string>{"2.steps", "step-000000000004.3.part.tmp"}));
}

}  // namespace
}  // namespace gossamer::commands
