// SPDX-License-Identifier: Apache-2.0
#include "commands/run/kept_network.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "host/api/files.h"
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
    std::string weights(1000, 'w');
    const std::vector<tensors::NamedTensor> tensors = {
        {.name = "weights", .bytes = std::as_writable_bytes(std::span(weights))}};
    ASSERT_TRUE(tensors::save_checkpoint(disk_, paths_.checkpoints(), info(step, finished), tensors, 3).ok());
  }
  void of_a_fleet(std::uint64_t step, NodeId node = NodeId(3)) {
    std::string weights(1000, 'w');
    const std::vector<tensors::NamedTensor> tensors = {
        {.name = "piece", .bytes = std::as_writable_bytes(std::span(weights))}};
    ASSERT_TRUE(disk_.make_directories(paths_.checkpoints()).ok());
    ASSERT_TRUE(
        tensors::write_fleet_file(disk_, paths_.checkpoints(), node, info(step, false), tensors).ok());
  }
  // Turns a byte of the weights in a file over, or cuts off its end.
  void damage(const std::string& name, bool cut = false) {
    const std::string path = paths_.checkpoints() + "/" + name;
    std::string bytes = *host::read_text(disk_, path);
    if (cut) bytes.resize(bytes.size() - 1);
    if (!cut) bytes[bytes.find("wwww")] = 'x';
    ASSERT_TRUE(host::replace_file(disk_, path, bytes).ok());
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

// Claim: a checkpoint that is damaged, in its footer or in its weights, is none. The one before it counts.
TEST_F(KeptNetworkTest, IsNoDamagedCheckpoint) {
  for (const bool cut : {false, true}) {
    SCOPED_TRACE(cut);
    own(4, false);
    own(6, true);
    damage(tensors::checkpoint_name(StepNumber(6)), cut);
    expect(4, false);
  }
}

// Claim: a copy that a user has made under another name is no checkpoint of the run.
TEST_F(KeptNetworkTest, IsNoCopyOfAnotherName) {
  own(4, false);
  own(6, true);
  const std::string last = paths_.checkpoints() + "/" + tensors::checkpoint_name(StepNumber(6));
  ASSERT_TRUE(disk_.rename(last, paths_.checkpoints() + "/step-best.ckpt").ok());
  expect(4, false);
}

// Claim: the files of a fleet's members are of the trained network if they are of the run's last step.
TEST_F(KeptNetworkTest, IsOfAFleet) {
  of_a_fleet(4);
  expect(4, false);
  of_a_fleet(6);
  expect(6, true);
}

// Claim: a damaged piece of a fleet's checkpoint costs nothing while another file has it. A file of which
// nobody can tell what it had counts as lost.
TEST_F(KeptNetworkTest, IsNoDamagedPiece) {
  of_a_fleet(4);
  of_a_fleet(6);
  of_a_fleet(6, NodeId(4));
  damage(tensors::fleet_file_name({.step = StepNumber(6), .node = NodeId(3)}));
  expect(6, true);
  damage(tensors::fleet_file_name({.step = StepNumber(6), .node = NodeId(4)}));
  expect(4, false);
  of_a_fleet(6);
  expect(6, true);
  damage(tensors::fleet_file_name({.step = StepNumber(6), .node = NodeId(4)}), true);
  expect(4, false);
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
