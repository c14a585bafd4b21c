// SPDX-License-Identifier: Apache-2.0
#include "commands/run/checkpoint_warnings.h"

#include <gtest/gtest.h>

#include <string>

#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

class CheckpointWarningsTest : public ::testing::Test {
 protected:
  // What people are told of a checkpoint that fails now.
  std::string fail(std::uint64_t step) {
    machine_.console.text.clear();
    warnings_.on_event("checkpoint_failed", {{"step", step}, {"error", std::string("no room")}});
    return machine_.console.text;
  }
  std::string write(std::uint64_t step) {
    machine_.console.text.clear();
    warnings_.on_event("checkpoint_written", {{"step", step}});
    return machine_.console.text;
  }

  run::testing::SimMachine machine_;
  const run::NodeHost host_{.disk = machine_.disk,
                            .clock = machine_.clock,
                            .compute = machine_.compute,
                            .kernels = kernels::kernels_for(kernels::best_isa()),
                            .console = machine_.console,
                            .verbosity = run::Verbosity::kQuiet};
  CheckpointWarnings warnings_{host_};
};

// Claim: the first failure is told, also when quiet, and so is the first one after a checkpoint was written.
// Checkpoints that are written as ever are not.
TEST_F(CheckpointWarningsTest, TellTheFirstFailure) {
  EXPECT_EQ(write(1), "");
  EXPECT_EQ(fail(2), "warning: no checkpoint of step 2: no room\n");
  EXPECT_EQ(fail(3), "");
  EXPECT_EQ(write(4),
            "warning: checkpoints are written again: one of step 4, after 2 checkpoints that could not be\n");
  EXPECT_EQ(write(5), "");
  EXPECT_EQ(fail(6), "warning: no checkpoint of step 6: no room\n");
}

// Claim: failures that go on are told again after a while, with their number.
TEST_F(CheckpointWarningsTest, TellAgainAfterAWhile) {
  fail(1);
  machine_.clock.advance(CheckpointWarnings::kAgain - Duration{1});
  EXPECT_EQ(fail(2), "");
  machine_.clock.advance(Duration{1});
  EXPECT_EQ(fail(3),
            "warning: no checkpoint of step 3: no room\nThe 2 before it could not be written either.\n");
  EXPECT_EQ(fail(4), "");
}

// Claim: of several nodes, the one that could not write is named.
TEST_F(CheckpointWarningsTest, NameTheNode) {
  warnings_.on_event(
      "checkpoint_failed",
      {{"step", std::uint64_t{7}}, {"node", std::uint64_t{3}}, {"error", std::string("full")}});
  EXPECT_EQ(machine_.console.text, "warning: no checkpoint of step 7 by node 3: full\n");
}

// Claim: a step counts once, whichever nodes could not write it. News of an older one ends no warning.
TEST_F(CheckpointWarningsTest, CountSteps) {
  for (const std::uint64_t node : {1U, 2U, 3U})
    warnings_.on_event("checkpoint_failed",
                       {{"step", std::uint64_t{20}}, {"node", node}, {"error", std::string("full")}});
  EXPECT_EQ(write(10), "");
  EXPECT_EQ(fail(30), "");
  EXPECT_EQ(
      write(30),
      "warning: checkpoints are written again: one of step 30, after 2 checkpoints that could not be\n");
  // The run has gone back.
  EXPECT_EQ(fail(15), "warning: no checkpoint of step 15: no room\n");
  EXPECT_EQ(write(16),
            "warning: checkpoints are written again: one of step 16, after 1 checkpoint that could not be\n");
}

}  // namespace
}  // namespace gossamer::commands
