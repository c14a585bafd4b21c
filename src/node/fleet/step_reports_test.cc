// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/step_reports.h"

#include <gtest/gtest.h>

#include <cmath>

#include "host/posix/disk.h"

namespace gossamer::node {
namespace {

// On the real disk, where a file can be read while it is written.
class StepReportsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk_.remove_all(directory_).ok()); }

  StepReports& member(std::uint64_t node) {
    auto& one = members_[node];
    if (one == nullptr) one = std::make_unique<StepReports>(disk_, directory_, NodeId(node));
    return *one;
  }
  void tell(std::uint64_t node, engine::FleetStep step) { member(node).add(step); }
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

engine::FleetStep step(std::uint64_t epoch, std::uint64_t at, std::size_t rank, std::size_t members,
                       double loss) {
  return {.epoch = Epoch(epoch), .step = StepNumber(at), .rank = rank, .members = members, .loss = loss};
}

// A step is known when all members have told of it, as the sum of their shares; each is given out once, in
// order, also while members go on writing.
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

// What died with a member is left out; a step that was done again by fewer counts once, as they did it.
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

// A loss that is no number any more is told too; a line that is torn, or none, is nothing.
TEST_F(StepReportsTest, TakesAnyLossAndNoGarbage) {
  tell(2, step(1, 0, 0, 1, std::nan("")));
  const auto first = reader_.read();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(std::isnan(first[0].loss));
  auto file = disk_.open_writable(directory_ + "/9.steps", host::WriteMode::kAppend);
  ASSERT_TRUE(file.ok());
  const std::string text = "what is this\n1 1 7 1 0.5\n1 1 0 1 0.";
  ASSERT_TRUE((*file)->append(std::as_bytes(std::span(text.data(), text.size()))).ok());
  EXPECT_EQ(read(), "");
  const std::string rest = "25\n";
  ASSERT_TRUE((*file)->append(std::as_bytes(std::span(rest.data(), rest.size()))).ok());
  EXPECT_EQ(read(), "1:3 ");
}

}  // namespace
}  // namespace gossamer::node
