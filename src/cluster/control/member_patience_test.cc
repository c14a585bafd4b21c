// SPDX-License-Identifier: Apache-2.0
//
// How long a member goes on without a coordinator.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cluster/control/test_member.h"

namespace gossamer::cluster {
namespace {

using MemberPatience = MemberTest;

// Claim: the end of its patience ends the process, too, with the last answer as its error. The time that the
// process stood still is not counted: it asked nobody then.
TEST_F(MemberPatience, EndsWhenPatienceDoes) {
  std::optional<Error> ended;
  int answers = 0;
  now_ = now_ + options().patience + options().patience;  // the machine was suspended
  for (; !ended && answers < 1000; ++answers) {
    process_.on(host::Answered{network_.asked(), std::string("garbage")}, now_);
    ended = error();
    now_ = now_ + from_seconds(5.5);
    process_.tick(now_);
  }
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->kind, ErrorKind::kBadData);
  EXPECT_NEAR(answers, (600 - 10) / 5.5, 2);
}

// Claim: a life gives the process its patience again. What it tried in vain before counts no more.
TEST_F(MemberPatience, BeginsAnewWithALife) {
  const auto tries_in_vain = [&] {
    for (int tries = 0; tries < 100; ++tries) {
      process_.on(host::Answered{network_.asked(), std::string("garbage")}, now_);
      now_ = now_ + from_seconds(5.5);
      process_.tick(now_);
    }
  };
  tries_in_vain();
  answer(kSelf);
  ASSERT_NE(process_.member(), nullptr);
  process_.begin_anew({.what = "its address has gone"}, now_);
  now_ = now_ + from_seconds(1);
  process_.tick(now_);
  tries_in_vain();
  EXPECT_FALSE(process_.done());
}

// Claim: a member hears nothing of its coordinator while its own process stands still. That is not counted,
// however long it takes. What it hears nothing of while it works ends it after ten minutes.
TEST_F(MemberPatience, AnOwnPauseIsNoSilence) {
  answer(kSelf);
  Member& own = *process_.member();
  own.on(net::LinkUp{own.coordinator()}, now_);
  for (const double pause : {4.0, 6.0, 599.0, 601.0, 86'400.0}) {
    wait_led(1);
    now_ = now_ + from_seconds(pause);
    own.tick(now_);
    EXPECT_FALSE(own.ended()) << pause;
  }
  wait_led(1);
  wait(590);
  EXPECT_FALSE(own.ended());
  now_ = now_ + from_seconds(700);
  own.tick(now_);
  EXPECT_FALSE(own.ended());
  wait(12);
  EXPECT_TRUE(own.ended());
}

}  // namespace
}  // namespace gossamer::cluster
