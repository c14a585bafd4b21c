// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "commands/train_fleet/test_checkpointed_run.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "learn/sparse/network/network.h"

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointWriterTest : public testing::CheckpointedRunTest {
 protected:
  CheckpointWriterTest() {
    sparse::initialize(network_, {}, std::vector<std::uint32_t>(shape_.network.labels, 1), compute_);
  }
  // The first weight in the newest checkpoint; nothing when there is none.
  std::optional<float> newest() {
    const auto nobody = [](std::string_view, EventFields) {};
    auto found = sparse_engine::FleetCheckpoint::open_newest(
        disk_, kDirectory, run_, sparse_engine::FleetCheckpoint::Verify::kAll, nobody);
    EXPECT_TRUE(found.ok());
    if (!found->has_value()) return std::nullopt;
    sparse::Network network(shape_.network, sparse::whole(shape_.network), run_.moments);
    const std::vector<std::uint32_t> counts(shape_.network.labels, 1);
    EXPECT_TRUE((*found)->restore(network, counts, nobody).ok());
    return network.output.weights(0)[0];
  }

  host::SimClock clock_;
  host::SimCompute compute_{host::SimComputeOptions{.workers = 1}};
  sparse::Network network_{shape_.network, sparse::whole(shape_.network), run_.moments};
  std::vector<std::string> failures_;
  CheckpointWriter writer_{disk_,
                           clock_,
                           {.directory = kDirectory,
                            .node = NodeId(3),
                            .shape = shape_,
                            .moments = run_.moments,
                            .info = {.next_step = {}, .run_id = "r", .config_fingerprint = "f"},
                            .every_minutes = 2},
                           [this](StepNumber step, const Error& error) {
                             failures_.push_back(std::to_string(step.value) + " " + error.message());
                           }};
};

// A checkpoint has the state of the moment when it was saved, whatever has changed since.
TEST_F(CheckpointWriterTest, WritesACopy) {
  for (std::uint64_t step = 1; step <= 20; ++step) {
    network_.output.weights(0)[0] = static_cast<float>(step);
    writer_.save(StepNumber(step), network_);
    network_.output.weights(0)[0] = -1;
  }
  writer_.finish();
  EXPECT_EQ(newest(), 20.0F);
  EXPECT_TRUE(failures_.empty());
}

// A full disk costs the checkpoint and is told with its cause. Earlier ones stay, and later ones are written.
TEST_F(CheckpointWriterTest, TellsOfAFullDisk) {
  network_.output.weights(0)[0] = 1;
  writer_.save(StepNumber(1), network_);
  writer_.finish();
  disk_.restart_count({.capacity_bytes = 3000});
  network_.output.weights(0)[0] = 2;
  writer_.save(StepNumber(2), network_);
  writer_.finish();
  EXPECT_THAT(failures_, ElementsAre(HasSubstr("step-000000000002.3.part")));
  EXPECT_EQ(newest(), 1.0F);
  disk_.restart_count({});
  writer_.save(StepNumber(3), network_);
  writer_.finish();
  EXPECT_EQ(newest(), 2.0F);
  EXPECT_EQ(failures_.size(), 1u);
}

// A checkpoint by time is due so long after the last one, or after the beginning.
TEST_F(CheckpointWriterTest, IsDueByTime) {
  EXPECT_FALSE(writer_.due());
  clock_.advance(from_seconds(119));
  EXPECT_FALSE(writer_.due());
  clock_.advance(from_seconds(1));
  EXPECT_TRUE(writer_.due());
  writer_.save(StepNumber(1), network_);
  EXPECT_FALSE(writer_.due());
}

}  // namespace
}  // namespace gossamer::commands
