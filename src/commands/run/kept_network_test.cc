// SPDX-License-Identifier: Apache-2.0
#include "commands/run/kept_network.h"

#include <gtest/gtest.h>

#include <string>

#include "host/sim/disk.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

// A run that was finished after six steps.
class KeptNetworkTest : public ::testing::Test {
 protected:
  static tensors::CheckpointInfo info(std::uint64_t step, bool finished) {
    tensors::CheckpointInfo info;
    info.next_step = StepNumber(step);
    info.finished = finished;
    return info;
  }
  void own(std::uint64_t step, bool finished) {
    ASSERT_TRUE(disk_.make_directories(paths_.checkpoints()).ok());
    ASSERT_TRUE(tensors::save_checkpoint(disk_, paths_.checkpoints(), info(step, finished), {}, 3).ok());
  }
  void of_a_fleet(std::uint64_t step) {
    ASSERT_TRUE(disk_.make_directories(paths_.checkpoints()).ok());
    ASSERT_TRUE(
        tensors::write_fleet_file(disk_, paths_.checkpoints(), NodeId(3), info(step, false), {}).ok());
  }
  void expect(std::uint64_t step, bool trained) {
    const auto kept = kept_network(disk_, paths_, R"({"steps":6})");
    ASSERT_TRUE(kept.ok()) << kept.error().message();
    EXPECT_EQ(kept->step, StepNumber(step));
    EXPECT_EQ(kept->trained, trained);
  }

  host::SimDisk disk_;
  run::RunPaths paths_{"/run"};
};

// Claim: a run without checkpoints keeps nothing.
TEST_F(KeptNetworkTest, IsNothing) { expect(0, false); }

// Claim: the checkpoint of one process says itself whether steps are left after it.
TEST_F(KeptNetworkTest, IsOfOneProcess) {
  own(4, false);
  expect(4, false);
  own(6, true);
  expect(6, true);
}

// Claim: the files of a fleet's members are of the trained network if they are of the run's last step.
TEST_F(KeptNetworkTest, IsOfAFleet) {
  of_a_fleet(4);
  expect(4, false);
  of_a_fleet(6);
  expect(6, true);
}

// Claim: where both are kept, the newer one counts.
TEST_F(KeptNetworkTest, IsTheNewerOne) {
  own(5, false);
  of_a_fleet(4);
  expect(5, false);
  of_a_fleet(6);
  expect(6, true);
}

}  // namespace
}  // namespace gossamer::commands
