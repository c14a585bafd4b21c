// SPDX-License-Identifier: Apache-2.0
#include "commands/run/step_reports.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/posix/disk.h"
#include "host/sim/disk.h"

namespace gossamer::commands {
namespace {

// The tests use the real disk, where a file can be read while it is written.
class StepReportsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk_.remove_all(directory_).ok()); }

  StepReports& member(std::uint64_t node) {
    auto& one = members_[node];
    if (one == nullptr) one = std::make_unique<StepReports>(disk_, directory_, NodeId(node));
    return *one;
  }
  void tell(std::uint64_t node, engine::MemberStep step) { member(node).add(step); }
  std::string read() {
    std::string text;
    for (const StepLoss& one : reader_.read())
      text += std::to_string(one.step.value) + ":" + std::to_string(std::lround(one.loss * 10)) + " ";
    return text;
  }

  host::PosixDisk disk_;
  const std::string directory_ = ::testing::TempDir() + "step_reports/" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
  StepReportReader reader_{disk_, directory_};
  std::map<std::uint64_t, std::unique_ptr<StepReports>> members_;
};

engine::MemberStep step(std::uint64_t epoch, std::uint64_t at, std::size_t rank, std::size_t members,
                        double loss) {
  return {.epoch = Epoch(epoch),
          .step = StepNumber(at),
          .rank = rank,
          .members = members,
          .loss = loss,
          .sent = {}};
}

// A step is known when all members have told of it, with the sum of their losses. Each step is given out
// once, in order, also while members go on writing.
TEST_F(StepReportsTest, AddsUpWhatAllHaveTold) {
  EXPECT_EQ(read(), "");
  tell(2, step(1, 0, 0, 2, 0.5));
  EXPECT_EQ(read(), "");
  tell(3, step(1, 0, 1, 2, 0.2));
  tell(3, step(1, 1, 1, 2, 0.3));
  EXPECT_EQ(read(), "0:7 ");
  tell(2, step(1, 1, 0, 2, 0.3));
  tell(2, step(1, 2, 0, 2, 0.1));
  tell(3, step(1, 2, 1, 2, 0.1));
  EXPECT_EQ(read(), "1:6 2:2 ");
  EXPECT_EQ(read(), "");
}

// Steps that died with a member are left out. A step that was done again by fewer
// members counts once, as they did it.
TEST_F(StepReportsTest, GoesOnWithoutTheDead) {
  tell(2, step(1, 0, 0, 2, 0.5));
  tell(3, step(1, 0, 1, 2, 0.5));
  tell(2, step(1, 1, 0, 2, 0.5));  // node 3 died before it told
  tell(3, step(1, 2, 1, 2, 0.9));  // it alone had applied step 2
  tell(2, step(4, 2, 0, 1, 0.4));
  EXPECT_EQ(read(), "0:10 2:4 ");
  tell(2, step(4, 3, 0, 1, 0.3));
  EXPECT_EQ(read(), "3:3 ");
}

// A loss that is no number any more is told too. A torn line, or another text, counts as nothing.
TEST_F(StepReportsTest, TakesAnyLossAndNoGarbage) {
  tell(2, step(1, 0, 0, 1, std::nan("")));
  const auto first = reader_.read();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(std::isnan(first[0].loss));
  auto file = disk_.open_writable(directory_ + "/9.steps", host::WriteMode::kAppend);
  ASSERT_TRUE(file.ok());
  const std::string text = "what is this\n1 1 7 1 0.5 0 0\n1 1 0 1 0.5\n1 1 0 1 0.";
  ASSERT_TRUE((*file)->append(std::as_bytes(std::span(text.data(), text.size()))).ok());
  EXPECT_EQ(read(), "");
  const std::string rest = "25 9 8\n";
  ASSERT_TRUE((*file)->append(std::as_bytes(std::span(rest.data(), rest.size()))).ok());
  EXPECT_EQ(read(), "1:3 ");
}

// A checkpoint that could not be written has a line of its own between those of steps.
TEST_F(StepReportsTest, TellsOfCheckpoints) {
  tell(1, step(1, 0, 0, 1, 0.5));
  member(1).add_failure(StepNumber(1), {.where = "DIR/file", .what = "cannot write", .got = "a full\ndisk"});
  tell(1, step(1, 1, 0, 1, 0.4));
  EXPECT_EQ(read(), "0:5 1:4 ");
  const auto failures = reader_.take_failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].step, StepNumber(1));
  EXPECT_NE(failures[0].message.find("DIR/file"), std::string::npos);
  EXPECT_TRUE(reader_.take_failures().empty());
}

// A full disk costs the lines that it has no room for. A failed checkpoint is told once there is room.
TEST(StepReports, SurviveAFullDisk) {
  host::SimDisk disk;
  StepReports member(disk, "/steps", NodeId(1));
  member.add(step(1, 0, 0, 1, 0.5));
  disk.restart_count({.capacity_bytes = 20});
  member.add(step(1, 1, 0, 1, 0.4));
  member.add_failure(StepNumber(2), {.what = "no room"});
  disk.restart_count({});
  member.add(step(1, 2, 0, 1, 0.3));
  StepReportReader reader(disk, "/steps");
  const auto steps = reader.read();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].step, StepNumber(2));
  const auto failures = reader.take_failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].message.find("no room"), std::string::npos);
}

// Bytes are counted for each step of each member, over all of its lives.
TEST_F(StepReportsTest, TellsTheBytesOfAStep) {
  EXPECT_EQ(reader_.bytes_of_step().steps, 0);
  const auto told = [&](std::uint64_t node, std::uint64_t at, engine::SentBytes sent) {
    engine::MemberStep one = step(1, at, node - 1, 2, 0.5);
    one.sent = sent;
    tell(node, one);
  };
  told(1, 0, {.steps = 100, .background = 10});
  told(1, 1, {.steps = 200, .background = 20});
  told(2, 0, {.steps = 120, .background = 0});
  told(2, 1, {.steps = 80, .background = 10});  // told by its next life
  EXPECT_EQ(read(), "0:10 1:10 ");
  EXPECT_DOUBLE_EQ(reader_.bytes_of_step().steps, (200.0 + 120 + 80) / 4);
  EXPECT_DOUBLE_EQ(reader_.bytes_of_step().background, (20.0 + 0 + 10) / 4);
}

}  // namespace
}  // namespace gossamer::commands
