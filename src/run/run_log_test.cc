// SPDX-License-Identifier: Apache-2.0
#include "run/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "host/api/files.h"
#include "host/sim/clock.h"
#include "host/sim/disk.h"

namespace gossamer::run {
namespace {

RunLog::Files files() { return {.metrics = "metrics.jsonl", .events = "events.jsonl"}; }

MetricLine at(std::uint64_t step) {
  return {.step = step, .epoch = 0.5, .loss = 1.0 / static_cast<double>(step), .learning_rate = 0.01};
}

// Lines are JSON, one object each, and the curve is what they say.
TEST(RunLog, WritesJsonLines) {
  host::SimDisk disk;
  const host::SimClock clock;
  RunLog log(disk, clock, files());
  ASSERT_TRUE(log.continue_at(0).ok());
  log.metric(at(10));
  log.metric(at(20));
  log.event("checkpoint_written", {{"step", std::uint64_t{20}}, {"path", std::string("a\xff\"b")}});
  EXPECT_FALSE(log.first_error().has_value());
  ASSERT_EQ(log.curve().size(), 2U);
  EXPECT_EQ(log.curve()[1].step, 20U);

  const std::string metrics = *host::read_text(disk, "metrics.jsonl");
  const auto first = nlohmann::json::parse(metrics.substr(0, metrics.find('\n')));
  EXPECT_EQ(first["step"], 10);
  EXPECT_EQ(first["loss"], 0.1);
  const auto event = nlohmann::json::parse(*host::read_text(disk, "events.jsonl"));
  EXPECT_EQ(event["event"], "checkpoint_written");
  EXPECT_EQ(event["step"], 20);
  EXPECT_EQ(event["time"], host::SimClock::kWallStart);
}

// The active rows of a step stand in its line, even if they are 0. An engine without such has none there.
TEST(RunLog, LeavesOutWhatAnEngineDoesNotHave) {
  host::SimDisk disk;
  const host::SimClock clock;
  RunLog log(disk, clock, files());
  ASSERT_TRUE(log.continue_at(0).ok());
  log.metric({.step = 1, .samples_per_second = 5, .active_rows = 0});
  log.metric({.step = 2});
  EXPECT_EQ(
      *host::read_text(disk, "metrics.jsonl"),
      "{\"step\":1,\"epoch\":0.0,\"loss\":0.0,\"lr\":0.0,\"samples_per_second\":5.0,\"active_rows\":0}\n"
      "{\"step\":2,\"epoch\":0.0,\"loss\":0.0,\"lr\":0.0}\n");
}

// A log that continues at a step drops later lines and a torn last one. The file then reads like that
// of a run that was never stopped.
TEST(RunLog, ContinuesWithoutDoubleLines) {
  host::SimDisk whole;
  host::SimDisk stopped;
  const host::SimClock clock;
  {
    RunLog log(whole, clock, files());
    for (std::uint64_t step = 10; step <= 60; step += 10) log.metric(at(step));
  }
  {
    RunLog log(stopped, clock, files());
    for (std::uint64_t step = 10; step <= 50; step += 10) log.metric(at(step));
  }
  std::string torn = *host::read_text(stopped, "metrics.jsonl");
  torn.resize(torn.size() - 7);
  ASSERT_TRUE(host::replace_file(stopped, "metrics.jsonl", torn).ok());
  {
    RunLog log(stopped, clock, files());
    ASSERT_TRUE(log.continue_at(30).ok());
    EXPECT_EQ(log.curve().size(), 3U);
    for (std::uint64_t step = 40; step <= 60; step += 10) log.metric(at(step));
  }
  EXPECT_EQ(*host::read_text(stopped, "metrics.jsonl"), *host::read_text(whole, "metrics.jsonl"));
}

// Claim: a crash tears the last event, and no other. What happens after it stands in a line of its own.
TEST(RunLog, EventsAfterACrash) {
  host::SimDisk disk;
  const host::SimClock clock;
  const std::string torn = "{\"time\":1.0,\"event\":\"before\"}\n{\"time\":2.0,\"eve";
  ASSERT_TRUE(host::replace_file(disk, "events.jsonl", torn).ok());
  RunLog log(disk, clock, files());
  ASSERT_TRUE(log.continue_at(0).ok());
  log.event("after", {});
  const std::string text = *host::read_text(disk, "events.jsonl");
  const std::size_t last = text.rfind('\n', text.size() - 2);
  const auto event = nlohmann::json::parse(text.substr(last + 1), nullptr, false);
  ASSERT_TRUE(event.is_object()) << text;
  EXPECT_EQ(event["event"], "after");
}

// A log is taken back while it is written. What follows stands behind the lines that were kept.
TEST(RunLog, IsTakenBack) {
  host::SimDisk disk;
  const host::SimClock clock;
  RunLog log(disk, clock, files());
  for (std::uint64_t step = 10; step <= 50; step += 10) log.metric(at(step));
  ASSERT_TRUE(log.continue_at(20).ok());
  for (std::uint64_t step = 30; step <= 60; step += 10) log.metric(at(step));
  EXPECT_EQ(log.curve().size(), 6U);
  RunLog again(disk, clock, files());
  ASSERT_TRUE(again.continue_at(100).ok());
  ASSERT_EQ(again.curve().size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(again.curve()[i].step, 10 * (i + 1));
}

// A full disk does not stop the run. The error is kept, and the curve goes on.
TEST(RunLog, KeepsTheFirstError) {
  host::SimDisk disk(host::SimDiskOptions{.capacity_bytes = 20});
  const host::SimClock clock;
  RunLog log(disk, clock, files());
  log.metric(at(1));
  log.metric(at(2));
  log.event("lost", {});
  ASSERT_TRUE(log.first_error().has_value());
  EXPECT_THAT(log.first_error()->message(), ::testing::HasSubstr("metrics.jsonl"));
  EXPECT_EQ(log.curve().size(), 2U);
}

// When a full disk has room again, the torn text is a line of its own, and the next lines can be read.
TEST(RunLog, RoomAgain) {
  host::SimDisk disk(host::SimDiskOptions{.capacity_bytes = 300});
  const host::SimClock clock;
  RunLog log(disk, clock, files());
  log.event("before", {});
  ASSERT_TRUE(host::replace_file(disk, "filling", std::string(210, 'x')).ok());
  log.event("torn by the disk", {});
  log.event("lost", {});
  EXPECT_TRUE(log.first_error().has_value());
  ASSERT_TRUE(disk.remove_all("filling").ok());
  log.event("after", {});
  const std::string text = *host::read_text(disk, "events.jsonl");
  ASSERT_TRUE(text.ends_with('\n'));
  const std::size_t last = text.rfind('\n', text.size() - 2);
  EXPECT_EQ(nlohmann::json::parse(text.substr(last + 1))["event"], "after");
  EXPECT_EQ(nlohmann::json::parse(text.substr(0, text.find('\n')))["event"], "before");
}

}  // namespace
}  // namespace gossamer::run
