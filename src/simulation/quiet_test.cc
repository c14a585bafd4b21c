// SPDX-License-Identifier: Apache-2.0
#include "simulation/quiet.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

namespace gossamer::simulation {
namespace {

constexpr Calm kBefore{.at = {from_seconds(60).ns},
                       .generation = Generation(2),
                       .led_since = {from_seconds(10).ns},
                       .epoch = Epoch(9),
                       .fenced = 3,
                       .lives = 6,
                       .rebalanced = 1,
                       .members = 4,
                       .traffic = {.beats = 2000,
                                   .beats_seen = 2000,
                                   .requests = 90,
                                   .answers = 90,
                                   .doubts = 8,
                                   .others = 50,
                                   .silences = 1}};

// Ten seconds with the messages that the protocol's page allows for four members.
Calm ten_quiet_seconds() {
  Calm after = kBefore;
  after.at = {from_seconds(70).ns};
  after.traffic.beats += 400;
  after.traffic.beats_seen += 400;
  after.traffic.requests += 40;
  after.traffic.answers += 40;
  return after;
}

// Claim: beats and answered requests are quiet. So are a change of view for the sake of speed, another lead,
// and questions about a member that a lossy line keeps silent.
TEST(Quiet, WhatThePageSaysIsQuiet) {
  EXPECT_EQ(disturbance(kBefore, ten_quiet_seconds()), std::nullopt);
  Calm rebalanced = ten_quiet_seconds();
  ++rebalanced.rebalanced;
  ++rebalanced.epoch.value;
  rebalanced.traffic.others += 12;
  EXPECT_EQ(disturbance(kBefore, rebalanced), std::nullopt);
  Calm led_anew = ten_quiet_seconds();
  ++led_anew.generation.value;
  ++led_anew.fenced;
  led_anew.traffic.others += 8;
  EXPECT_EQ(disturbance(kBefore, led_anew), std::nullopt);
  Calm silent = ten_quiet_seconds();
  ++silent.traffic.silences;
  silent.traffic.doubts += 16;
  EXPECT_EQ(disturbance(kBefore, silent), std::nullopt) << "one is over, and one under way";
  Calm just_led = kBefore;
  just_led.led_since = {from_seconds(51).ns};
  Calm all_back = ten_quiet_seconds();
  all_back.traffic.others += 20;
  EXPECT_EQ(disturbance(just_led, all_back), std::nullopt);
  just_led.led_since = {from_seconds(50).ns};
  EXPECT_NE(disturbance(just_led, all_back), std::nullopt);
}

// Claim: a new lead may ask about each of four members that has not come to it, and withdraw that: 2 x 4 x 4
// messages beside the 2 x 4 of one silence under way. After its first ten seconds they are too many.
TEST(Quiet, ANewLeadAsksAboutMembersYetToCome) {
  const auto with_doubts = [](std::uint64_t doubts) {
    Calm after = ten_quiet_seconds();
    after.traffic.doubts += doubts;
    return after;
  };
  Calm just_led = kBefore;
  just_led.led_since = {from_seconds(51).ns};
  EXPECT_EQ(disturbance(just_led, with_doubts(40)), std::nullopt);
  EXPECT_NE(disturbance(just_led, with_doubts(41)), std::nullopt);
  just_led.led_since = {from_seconds(50).ns};
  EXPECT_NE(disturbance(just_led, with_doubts(9)), std::nullopt);
  Calm led_anew = with_doubts(40);
  ++led_anew.generation.value;
  ++led_anew.fenced;
  EXPECT_EQ(disturbance(kBefore, led_anew), std::nullopt);
}

// Claim: each event beyond these is a disturbance.
TEST(Quiet, WhatIsBeyondIsADisturbance) {
  const std::vector<std::function<void(Calm&)>> beyond{[](Calm& after) { ++after.epoch.value; },
                                                       [](Calm& after) { ++after.fenced; },
                                                       [](Calm& after) { ++after.lives; },
                                                       [](Calm& after) { after.traffic.beats += 40; },
                                                       [](Calm& after) { ++after.traffic.beats_seen; },
                                                       [](Calm& after) { after.traffic.answers += 33; },
                                                       [](Calm& after) { after.traffic.doubts += 9; },
                                                       [](Calm& after) { after.traffic.others += 13; }};
  for (std::size_t i = 0; i < beyond.size(); ++i) {
    Calm after = ten_quiet_seconds();
    beyond[i](after);
    EXPECT_NE(disturbance(kBefore, after), std::nullopt) << "case " << i;
  }
}

}  // namespace
}  // namespace gossamer::simulation
