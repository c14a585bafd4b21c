// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/pace.h"

#include <gtest/gtest.h>

#include <limits>

namespace gossamer::cluster {
namespace {

constexpr Duration ms(std::int64_t count) { return {count * 1'000'000}; }

StepWork step_of(std::int64_t took_ms, std::int64_t cpu_ms = 0, std::int64_t all_cpu_ms = 0) {
  return {.work = 8,
          .took = ms(took_ms),
          .cpu = ms(cpu_ms),
          .process_cpu = ms(cpu_ms),
          .all_cpu = ms(all_cpu_ms)};
}

// Claim: a pace is told once a period, of all steps since the last one, and not without a measured step.
TEST(PaceMeter, AddsUpTheStepsOfAPeriod) {
  PaceMeter meter;
  Instant now;
  EXPECT_FALSE(meter.take(now));
  meter.add(step_of(9000), now);  // here the period begins
  for (const std::int64_t took_ms : {100, 300}) {
    now = now + ms(400);
    meter.add(step_of(took_ms), now);
    EXPECT_FALSE(meter.take(now));
  }
  now = now + ms(400);
  meter.add(step_of(200), now);
  const auto pace = meter.take(now);
  ASSERT_TRUE(pace);
  EXPECT_DOUBLE_EQ(pace->speed, 3 * 8 / 0.6);
  EXPECT_EQ(pace->own_work, 0);
  EXPECT_FALSE(meter.take(now + from_seconds(5)));
}

// Claim: own work is the CPU time beside the things' CPU time, at their price. Another quota, with which both
// take longer, changes the speed and not the own work. Other things change neither.
TEST(PaceMeter, OwnWorkIsInUnitsOfWork) {
  const auto measured = [](const StepWork& step) {
    PaceMeter meter;
    meter.add(step, {});
    meter.add(step, Instant{} + PaceMeter::kPeriod);
    return meter.take(Instant{} + PaceMeter::kPeriod).value_or(Pace{});
  };
  const Pace even =
      measured({.work = 16, .took = ms(320), .cpu = ms(128), .process_cpu = ms(128), .all_cpu = ms(192)});
  EXPECT_DOUBLE_EQ(even.speed, 50);
  EXPECT_DOUBLE_EQ(even.own_work, 8);
  const Pace weak =
      measured({.work = 16, .took = ms(1280), .cpu = ms(128), .process_cpu = ms(128), .all_cpu = ms(192)});
  EXPECT_DOUBLE_EQ(weak.speed, 12.5);
  EXPECT_DOUBLE_EQ(weak.own_work, 8);
  const Pace few =
      measured({.work = 4, .took = ms(80), .cpu = ms(32), .process_cpu = ms(32), .all_cpu = ms(96)});
  EXPECT_DOUBLE_EQ(few.speed, 50);
  EXPECT_DOUBLE_EQ(few.own_work, 8);
}

// Claim: side work during computing counts once. With a quota it slows computing down, and it would count
// again in the own work. A step is predicted to take all its CPU time at the present rate.
TEST(PaceMeter, WhatRunsBesideComputingCountsOnce) {
  PaceMeter meter;
  const StepWork step{
      .work = 16, .took = ms(1600), .cpu = ms(128), .process_cpu = ms(160), .all_cpu = ms(192)};
  meter.add(step, {});
  meter.add(step, Instant{} + PaceMeter::kPeriod);
  const Pace pace = meter.take(Instant{} + PaceMeter::kPeriod).value_or(Pace{});
  EXPECT_DOUBLE_EQ(pace.own_work, 8);
  EXPECT_DOUBLE_EQ((16 + pace.own_work) / pace.speed, 0.192 / (0.160 / 1.6));
}

// Claim: the time of a whole step is its mean over the period, waiting included.
TEST(PaceMeter, TellsOfWholeSteps) {
  PaceMeter meter;
  const StepWork step{
      .work = 16, .took = ms(10), .cpu = {}, .process_cpu = {}, .all_cpu = {}, .whole = ms(50)};
  meter.add(step, {});
  meter.add(step, Instant{} + PaceMeter::kPeriod);
  meter.add({.work = 16, .took = ms(10), .cpu = {}, .process_cpu = {}, .all_cpu = {}, .whole = ms(70)},
            Instant{} + PaceMeter::kPeriod);
  EXPECT_DOUBLE_EQ(meter.take(Instant{} + PaceMeter::kPeriod).value_or(Pace{}).step_s, 0.06);
}

// Claim: a member that holds nothing measures nothing.
TEST(PaceMeter, NothingIsNoMeasurement) {
  PaceMeter meter;
  meter.add({.work = 0, .took = {}, .cpu = {}, .process_cpu = {}, .all_cpu = ms(1)}, {});
  meter.add({.work = 0, .took = {}, .cpu = {}, .process_cpu = {}, .all_cpu = ms(1)},
            Instant{} + PaceMeter::kPeriod);
  EXPECT_FALSE(meter.take(Instant{} + PaceMeter::kPeriod));
}

// Claim: single measurements count for nothing. A change is believed as a whole once half of the window shows
// it.
TEST(SmoothedPace, IsTheMedianOfAWindow) {
  SmoothedPace smoothed;
  EXPECT_FALSE(smoothed.pace());
  for (std::size_t i = 0; i < SmoothedPace::kWindow; ++i)
    smoothed.add({.speed = i == 3 ? 1.0 : 50.0, .own_work = 8});
  EXPECT_EQ(smoothed.pace(), (Pace{.speed = 50, .own_work = 8}));
  std::size_t needed = 0;
  for (; smoothed.pace()->speed == 50 && needed < 100; ++needed) smoothed.add({.speed = 12.5, .own_work = 8});
  EXPECT_EQ(smoothed.pace()->speed, 12.5);
  EXPECT_EQ(needed, 1 + SmoothedPace::kWindow / 2);
}

// Claim: a value that can be no measurement is ignored.
TEST(SmoothedPace, TakesNumbersAlone) {
  SmoothedPace smoothed;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double speed : {0.0, -1.0, nan, infinity, 1e300, 1e-300})
    smoothed.add({.speed = speed, .own_work = 0});
  for (const double odd : {-1.0, nan, infinity, 1e300}) {
    smoothed.add({.speed = 1, .own_work = odd});
    smoothed.add({.speed = 1, .own_work = 1, .step_s = odd});
  }
  EXPECT_FALSE(smoothed.pace());
}

// Claim: a member that was left with nothing is tried after 10 minutes. After a trial that did not last it is
// tried in 20, and after a time at work in 10 again.
TEST(IdleTrial, ComesLaterEachTimeThatItDoesNotLast) {
  IdleTrial trial;
  Instant now;
  const auto wait = [&](double seconds) { now = now + from_seconds(seconds); };
  EXPECT_FALSE(trial.due(now));
  trial.placed(true, now);
  wait(3);
  EXPECT_FALSE(trial.due(now));
  for (const double pause : {600.0, 1200.0, 2400.0}) {
    trial.placed(false, now);
    wait(pause - 1);
    trial.placed(false, now);
    EXPECT_FALSE(trial.due(now));
    wait(1);
    EXPECT_TRUE(trial.due(now));
    trial.placed(true, now);
    EXPECT_FALSE(trial.due(now));
    wait(40);
  }
  wait(2400);
  trial.placed(false, now);
  wait(600);
  EXPECT_TRUE(trial.due(now));
}

}  // namespace
}  // namespace gossamer::cluster
