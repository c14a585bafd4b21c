// SPDX-License-Identifier: Apache-2.0
#include "commands/run/member_report.h"

#include <gossamer/reports.pb.h>
#include <gtest/gtest.h>

#include <cmath>

#include "node/reports/report_batch.h"

namespace gossamer::commands {
namespace {

const engine::MemberStep kStep{.epoch = Epoch(3),
                               .step = StepNumber(40),
                               .rank = 1,
                               .members = 2,
                               .loss = 0.1,
                               .sent = {.steps = 5, .background = 6}};
const engine::FleetRecovery kRecovery{.epoch = Epoch(4),
                                      .step = StepNumber(20),
                                      .cause = "box \"7\xff\" was\nlost",
                                      .total = {1'500'000'000},
                                      .detect = {1},
                                      .agree = {2},
                                      .load = {299'999'999},
                                      .replay = {123'456'789'012},
                                      .steps_replayed = 7};

// Each kind of report comes back as it was told, to the nanosecond and the last bit.
TEST(MemberReport, ComesBackAsItWas) {
  const auto step = read_report(report_bytes(kStep));
  ASSERT_TRUE(step.ok() && *step);
  const auto& read = std::get<engine::MemberStep>(**step);
  EXPECT_EQ(read.epoch, kStep.epoch);
  EXPECT_EQ(read.step, kStep.step);
  EXPECT_EQ(read.rank, 1U);
  EXPECT_EQ(read.members, 2U);
  EXPECT_EQ(read.loss, 0.1);
  EXPECT_EQ(read.sent.steps, 5U);
  EXPECT_EQ(read.sent.background, 6U);

  const auto recovery = read_report(report_bytes(kRecovery));
  ASSERT_TRUE(recovery.ok() && *recovery);
  const auto& again = std::get<engine::FleetRecovery>(**recovery);
  EXPECT_EQ(again.epoch, kRecovery.epoch);
  EXPECT_EQ(engine::fields_of(again).size(), engine::fields_of(kRecovery).size());
  EXPECT_EQ(again.cause, "box \"7\xff\" was\\x0alost");
  EXPECT_EQ(again.step, kRecovery.step);
  EXPECT_EQ(again.total, kRecovery.total);
  EXPECT_EQ(again.detect, kRecovery.detect);
  EXPECT_EQ(again.agree, kRecovery.agree);
  EXPECT_EQ(again.load, kRecovery.load);
  EXPECT_EQ(again.replay, kRecovery.replay);
  EXPECT_EQ(again.steps_replayed, 7U);

  const auto failed = read_report(report_bytes(FailedCheckpoint{.step = StepNumber(9), .error = "no room"}));
  ASSERT_TRUE(failed.ok() && *failed);
  EXPECT_EQ(std::get<FailedCheckpoint>(**failed).step, StepNumber(9));
  EXPECT_EQ(std::get<FailedCheckpoint>(**failed).error, "no room");

  const auto damaged = read_report(report_bytes(DamagedFile{.file = "a.part", .error = "a\nline"}));
  ASSERT_TRUE(damaged.ok() && *damaged);
  EXPECT_EQ(std::get<DamagedFile>(**damaged).file, "a.part");
  EXPECT_EQ(std::get<DamagedFile>(**damaged).error, "a\\x0aline");
}

// Each damaged file is reported once, whatever is told of its pieces. Other events are none of it.
TEST(MemberReport, DamagedFilesAreToldOnce) {
  std::vector<std::string> files;
  DamageReports damage([&](const MemberReport& one) { files.push_back(std::get<DamagedFile>(one).file); });
  const EventSink events = damage;
  for (const char* const file : {"a", "b", "a"})
    events("checkpoint_damaged", {{"file", std::string(file)}, {"error", std::string("wrong")}});
  events("checkpoint_written", {{"file", std::string("c")}});
  EXPECT_EQ(files, (std::vector<std::string>{"a", "b"}));
}

// A loss that is no number any more is a loss.
TEST(MemberReport, AnyLoss) {
  engine::MemberStep step = kStep;
  step.loss = std::nan("");
  const auto read = read_report(report_bytes(step));
  ASSERT_TRUE(read.ok() && *read);
  EXPECT_TRUE(std::isnan(std::get<engine::MemberStep>(**read).loss));
}

// A text is a line on a terminal, and not a long one, whatever the member tells.
TEST(MemberReport, TextsAreLines) {
  const std::string evil = "\x1b[2J\nall is well" + std::string(100'000, 'x');
  engine::FleetRecovery recovery = kRecovery;
  recovery.cause = evil;
  const auto cause = std::get<engine::FleetRecovery>(**read_report(report_bytes(recovery))).cause;
  const auto error =
      std::get<FailedCheckpoint>(**read_report(report_bytes(FailedCheckpoint{.step = {}, .error = evil})))
          .error;
  for (const std::string& text : {cause, error}) {
    EXPECT_LT(text.size(), 2100U);
    EXPECT_TRUE(text.starts_with("\\x1b[2J\\x0aall is well"));
  }
}

// The longest texts fit into a report.
TEST(MemberReport, FitsIntoFourKiB) {
  const std::string text(100'000, 'x');
  engine::FleetRecovery recovery = kRecovery;
  recovery.cause = text;
  for (const MemberReport& one :
       {MemberReport(recovery), MemberReport(FailedCheckpoint{.step = {}, .error = text}),
        MemberReport(DamagedFile{.file = text, .error = text})})
    EXPECT_LE(report_bytes(one).size(), node::kMostReport);
}

// Bytes that no member tells are told apart from no report, and from one of a later version.
TEST(MemberReport, OtherBytesAreNone) {
  const auto is_bad = [](const std::string& bytes) { return !read_report(bytes).ok(); };
  EXPECT_FALSE(*read_report(""));
  EXPECT_FALSE(*read_report(std::string("\xfa\x01\x00", 3)));
  EXPECT_TRUE(is_bad("\xff\xff"));
  EXPECT_TRUE(is_bad("nonsense"));
  engine::MemberStep step = kStep;
  step.rank = 2;
  EXPECT_TRUE(is_bad(report_bytes(step)));
  engine::FleetRecovery recovery = kRecovery;
  recovery.total = {-1};
  EXPECT_TRUE(is_bad(report_bytes(recovery)));
  const std::string whole = report_bytes(kRecovery);
  for (std::size_t size = 1; size < whole.size(); ++size) EXPECT_TRUE(is_bad(whole.substr(0, size))) << size;
}

}  // namespace
}  // namespace gossamer::commands
