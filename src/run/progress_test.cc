// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace gossamer::run {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HandClock final : public host::Clock {
 public:
  [[nodiscard]] Instant now() const override { return time; }
  [[nodiscard]] Duration process_cpu() const override { return {}; }
  [[nodiscard]] double wall_seconds() const override { return 0; }
  Instant time;
};

class TextConsole final : public Console {
 public:
  explicit TextConsole(bool is_terminal) : terminal_(is_terminal) {}
  void write(std::string_view more) override { text += more; }
  [[nodiscard]] bool terminal() const override { return terminal_; }
  [[nodiscard]] int columns() const override { return 60; }
  std::string text;

 private:
  bool terminal_;
};

int lines(const std::string& text) { return static_cast<int>(std::ranges::count(text, '\n')); }

// Progress away from a terminal is a line at once, then one every ten seconds and
// never more, each a whole line.
TEST(Progress, OneLineEveryTenSeconds) {
  HandClock clock;
  TextConsole console(false);
  {
    Progress progress(console, clock, "train", Verbosity::kNormal);
    for (std::uint64_t step = 0; step <= 350; ++step) {
      progress.update({.done = step, .total = 1000, .unit = "step", .detail = ""});
      clock.time = clock.time + from_milliseconds(100);
    }
  }
  EXPECT_EQ(lines(console.text), 4);  // at 0, 10, 20 and 30 s
  EXPECT_EQ(console.text.find('\r'), std::string::npos);
  EXPECT_THAT(console.text, HasSubstr(" 30 %  1 min 10 s left  step 300/1000  10 step/s\n"));
}

// On a terminal one line is drawn again, at most ten times a second. It is never wider than the screen, and a
// shorter line wipes out a longer one.
TEST(Progress, BarIsDrawnAgain) {
  HandClock clock;
  TextConsole console(true);
  Progress progress(console, clock, "train", Verbosity::kNormal);
  progress.update({.done = 0, .total = 10, .unit = "step", .detail = std::string(90, 'x')});
  EXPECT_THAT(console.text, StartsWith("\rtrain [....................]   0 %"));
  EXPECT_EQ(console.text.size(), 60U);  // the carriage return and 59 columns
  progress.update({.done = 1, .total = 10, .unit = "step", .detail = ""});
  EXPECT_EQ(console.text.size(), 60U) << "too soon";
  clock.time = clock.time + from_milliseconds(100);
  EXPECT_TRUE(progress.due());
  progress.update({.done = 5, .total = 10, .unit = "step", .detail = ""});
  EXPECT_EQ(console.text.size(), 120U) << "wipes the longer line";
  EXPECT_THAT(console.text, HasSubstr("[##########..........]  50 %"));
  progress.finish();
  EXPECT_THAT(console.text, EndsWith("\n"));
}

// Claim: a bar is drawn ten times a second, however often there is news, and not once its line is ended.
TEST(Progress, TenBarsASecond) {
  HandClock clock;
  TextConsole console(true);
  Progress progress(console, clock, "train", Verbosity::kNormal);
  for (std::uint64_t step = 0; step < 1000; ++step) {
    progress.update({.done = step, .total = 1000, .unit = "step", .detail = ""});
    clock.time = clock.time + from_milliseconds(1);
  }
  EXPECT_EQ(std::ranges::count(console.text, '\r'), 10);
  progress.finish();
  const std::string before = console.text;
  clock.time = clock.time + from_seconds(10);
  EXPECT_FALSE(progress.due());
  progress.update({.done = 1000, .total = 1000, .unit = "step", .detail = ""});
  EXPECT_EQ(console.text, before);
}

// Claim: what was told last is on the screen when the line of a bar ends.
TEST(Progress, TheEndIsDrawn) {
  HandClock clock;
  TextConsole console(true);
  Progress progress(console, clock, "train", Verbosity::kNormal);
  progress.update({.done = 0, .total = 10, .unit = "step", .detail = ""});
  clock.time = clock.time + from_milliseconds(50);
  progress.update({.done = 10, .total = 10, .unit = "step", .detail = ""});
  progress.finish();
  EXPECT_THAT(console.text, HasSubstr("[####################] 100 %"));
  EXPECT_THAT(console.text, EndsWith("\n"));
}

// Claim: work of unknown length shows what is done and how fast, in three figures.
TEST(Progress, UnknownTotal) {
  HandClock clock;
  TextConsole console(false);
  Progress progress(console, clock, "import", Verbosity::kNormal);
  for (const std::uint64_t done : {5U, 25U, 826'005U, 36'000'005U}) {
    progress.update({.done = done, .total = 0, .unit = "MB", .detail = ""});
    clock.time = clock.time + from_seconds(10);
  }
  EXPECT_EQ(console.text,
            "import 5 MB\nimport 25 MB  2.0 MB/s\n"
            "import 826005 MB  41.3k MB/s\nimport 36000005 MB  1.2M MB/s\n");
}

// A quiet Progress writes not a byte.
TEST(Progress, QuietIsSilent) {
  HandClock clock;
  TextConsole console(true);
  {
    Progress progress(console, clock, "train", Verbosity::kQuiet);
    progress.update({.done = 1, .total = 10, .unit = "step", .detail = ""});
  }
  EXPECT_EQ(console.text, "");
}

// A resumed run's rate counts only the steps of this process.
TEST(Progress, RateIgnoresWorkDoneBefore) {
  HandClock clock;
  TextConsole console(false);
  Progress progress(console, clock, "train", Verbosity::kNormal);
  progress.update({.done = 900, .total = 1000, .unit = "step", .detail = ""});
  clock.time = clock.time + from_seconds(10);
  progress.update({.done = 950, .total = 1000, .unit = "step", .detail = ""});
  EXPECT_THAT(console.text, HasSubstr("10 s left  step 950/1000  5.0 step/s"));
}

TEST(Human, Units) {
  // Numbers keep their meaning at every unit's edge.
  EXPECT_EQ(human_duration(59.4), "59 s");
  EXPECT_EQ(human_duration(59.6), "1 min 0 s");
  EXPECT_EQ(human_duration(3600), "1 h 0 min");
  EXPECT_EQ(human_duration(90000), "1 day 1 h");
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(1234567), "1,234,567");
  // A noun has its number.
  EXPECT_EQ(counted(0, "record"), "0 records");
  EXPECT_EQ(counted(1, "query"), "1 query");
  EXPECT_EQ(counted(2, "query"), "2 queries");
  EXPECT_EQ(counted(1001, "bad line"), "1,001 bad lines");
  EXPECT_EQ(counted(2, "day"), "2 days");
  EXPECT_EQ(counted(2, "key"), "2 keys");
}

}  // namespace
}  // namespace gossamer::run
