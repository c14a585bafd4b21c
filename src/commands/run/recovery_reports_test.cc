// SPDX-License-Identifier: Apache-2.0
#include "commands/run/recovery_reports.h"

#include <gtest/gtest.h>

#include <span>

#include "host/api/files.h"
#include "host/posix/disk.h"

namespace gossamer::commands {
namespace {

// The tests use the real disk, where a file can be read while it is written.
class RecoveryReportsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.remove_all(directory_).ok());
    ASSERT_TRUE(disk_.make_directories(directory_).ok());
  }

  host::PosixDisk disk_;
  const std::string directory_ = ::testing::TempDir() + "recovery_reports/" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
  RecoveryReportReader reader_{disk_, directory_};
};

engine::FleetRecovery recovery(std::uint64_t epoch, std::uint64_t step, double seconds) {
  return {.epoch = Epoch(epoch),
          .step = StepNumber(step),
          .cause = "box \"7\" was lost",
          .total = from_seconds(seconds),
          .detect = from_seconds(0.1),
          .agree = from_seconds(0.2),
          .load = from_seconds(0.3),
          .replay = from_seconds(0.4),
          .steps_replayed = 5};
}

// A recovery that several members tell is one. It has the figures of the member that it cost most, and is
// given out once, when all have had time to tell.
TEST_F(RecoveryReportsTest, OneForAllThatTell) {
  RecoveryReports first(disk_, directory_, NodeId(2));
  RecoveryReports second(disk_, directory_, NodeId(3));
  EXPECT_TRUE(reader_.read(StepNumber(99)).empty());
  first.add(recovery(4, 20, 1.5));
  EXPECT_TRUE(reader_.read(StepNumber(20)).empty());
  second.add(recovery(4, 20, 2.5));
  second.add(recovery(6, 30, 1));
  const auto read = reader_.read(StepNumber(21));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].cause, "box \"7\" was lost");
  EXPECT_EQ(read[0].epoch, Epoch(4));
  EXPECT_EQ(read[0].step, StepNumber(20));
  EXPECT_EQ(read[0].total, from_seconds(2.5));
  EXPECT_EQ(read[0].detect, from_seconds(0.1));
  EXPECT_EQ(read[0].agree, from_seconds(0.2));
  EXPECT_EQ(read[0].load, from_seconds(0.3));
  EXPECT_EQ(read[0].replay, from_seconds(0.4));
  EXPECT_EQ(read[0].steps_replayed, 5U);
  first.add(recovery(4, 20, 9));
  EXPECT_EQ(reader_.read(StepNumber(99)).size(), 1U);
  EXPECT_TRUE(reader_.read(StepNumber(99)).empty());
}

// A line has these names and numbers, in this order. Times come back to the nanosecond.
TEST_F(RecoveryReportsTest, LinesAreAsWritten) {
  RecoveryReports reports(disk_, directory_, NodeId(2));
  engine::FleetRecovery odd = recovery(4, 20, 1.5);
  odd.load = Duration{299'999'999};
  odd.replay = Duration{123'456'789'012};
  reports.add(odd);
  const auto text = host::read_text(disk_, directory_ + "/2.recoveries", 1000);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, R"({"agree":0.2,"cause":"box \"7\" was lost","detect":0.1,"epoch":4,"load":0.299999999,)"
                   R"("replay":123.456789012,"seconds":1.5,"step":20,"steps_replayed":5})"
                   "\n");
  const auto read = reader_.read(StepNumber(99));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].load, odd.load);
  EXPECT_EQ(read[0].replay, odd.replay);
}

// Lines of anything else are none.
TEST_F(RecoveryReportsTest, LeavesOutWhatIsNone) {
  auto file = disk_.open_writable(directory_ + "/1.recoveries", host::WriteMode::kAppend);
  ASSERT_TRUE(file.ok());
  const std::string lines = "\n{}\n[1]\n{\"cause\":3}\n{\"cause\":\"x\",\"epoch\":\"1\"}\nnonsense\n";
  ASSERT_TRUE((*file)->append(std::as_bytes(std::span(lines))).ok());
  EXPECT_TRUE(reader_.read(StepNumber(99)).empty());
}

}  // namespace
}  // namespace gossamer::commands
