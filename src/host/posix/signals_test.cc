// SPDX-License-Identifier: Apache-2.0
#include "host/posix/signals.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gossamer::host {
namespace {

struct sigaction action_of(int number) {
  struct sigaction action{};
  EXPECT_EQ(sigaction(number, nullptr, &action), 0);
  return action;
}

// Nothing is asked for until a signal comes; the first one is remembered, whatever follows.
TEST(PosixSignals, FirstSignalIsRemembered) {
  const PosixSignals signals;
  EXPECT_FALSE(signals.stop_requested());
  EXPECT_EQ(signals.signal_number(), 0);
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_TRUE(signals.stop_requested());
  EXPECT_EQ(signals.signal_number(), SIGTERM);
  ASSERT_EQ(raise(SIGINT), 0);
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_EQ(signals.signal_number(), SIGTERM);
}

// A new object starts without the signals of an older one, and old handlers are back afterwards.
TEST(PosixSignals, ScopeEndsCleanly) {
  // A shell starts what runs in its background with SIGINT ignored.
  const auto interrupt = action_of(SIGINT).sa_handler;
  const auto terminate = action_of(SIGTERM).sa_handler;
  for (int round = 0; round < 2; ++round) {
    {
      const PosixSignals signals;
      EXPECT_FALSE(signals.stop_requested());
      ASSERT_EQ(raise(SIGINT), 0);
      EXPECT_EQ(signals.signal_number(), SIGINT);
      EXPECT_NE(action_of(SIGINT).sa_handler, interrupt);
      EXPECT_NE(action_of(SIGTERM).sa_handler, terminate);
    }
    EXPECT_EQ(action_of(SIGINT).sa_handler, interrupt);
    EXPECT_EQ(action_of(SIGTERM).sa_handler, terminate);
  }
}

// Claim: a closed terminal asks for an end, as SIGTERM does. Under nohup it does not.
TEST(PosixSignals, ClosedTerminal) {
  const auto before = signal(SIGHUP, SIG_DFL);
  {
    const PosixSignals signals;
    ASSERT_EQ(raise(SIGHUP), 0);
    EXPECT_EQ(signals.signal_number(), SIGHUP);
  }
  EXPECT_EQ(action_of(SIGHUP).sa_handler, SIG_DFL);
  signal(SIGHUP, SIG_IGN);
  {
    const PosixSignals signals;
    ASSERT_EQ(raise(SIGHUP), 0);
    EXPECT_FALSE(signals.stop_requested());
  }
  EXPECT_EQ(action_of(SIGHUP).sa_handler, SIG_IGN);
  signal(SIGHUP, before);
}

// Two SIGINTs are survived, the third kills; SIGTERM never does.
TEST(PosixSignalsDeathTest, ThirdInterruptKills) {
  const auto survive = [](int interrupts) {
    const PosixSignals signals;
    for (int i = 0; i < 5; ++i) raise(SIGTERM);
    for (int i = 0; i < interrupts; ++i) raise(SIGINT);
    std::_Exit(signals.stop_requested() ? 7 : 8);
  };
  EXPECT_EXIT(survive(1), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(survive(2), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(survive(3), ::testing::KilledBySignal(SIGINT), "");
}

// Two at a time are our bug.
TEST(PosixSignalsDeathTest, OnlyOne) {
  const PosixSignals signals;
  EXPECT_DEATH(PosixSignals(), "CHECK failed");
}

}  // namespace
}  // namespace gossamer::host
