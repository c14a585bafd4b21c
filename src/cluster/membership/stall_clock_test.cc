// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/stall_clock.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

class StallClockTest : public ::testing::Test {
 protected:
  [[nodiscard]] static Instant at(double seconds) { return Instant{} + from_seconds(seconds); }
  StallClockTest() { clock_.expects(true, {}); }
  // Whether all are asked to rest then.
  bool asks(double seconds, double step_seconds = 0) {
    const bool due = clock_.is_due(step_seconds, at(seconds));
    if (due) clock_.asked(at(seconds));
    return due;
  }
  StallClock clock_;
};

// Claim: a run stands still once no step was committed for three minutes. A rest that finds nothing is asked
// for again after twice that time, and so on up to an hour, until a step is committed.
TEST_F(StallClockTest, WaitsLongerEachTime) {
  EXPECT_FALSE(asks(179.9));
  EXPECT_EQ(clock_.next_look(), at(180));
  EXPECT_TRUE(asks(180));
  EXPECT_FALSE(asks(539.9));
  EXPECT_TRUE(asks(540));
  double now = 540;
  for (const double time : {720, 1440, 2880, 3600, 3600}) {
    EXPECT_FALSE(asks(now + time - 0.1)) << time;
    now += time;
    EXPECT_TRUE(asks(now)) << time;
  }
  clock_.stepped(at(now + 1));
  EXPECT_FALSE(asks(now + 180));
  EXPECT_TRUE(asks(now + 181));
}

// Claim: a run whose steps are long stands still after three of them, an hour at most.
TEST_F(StallClockTest, StepsMayBeLong) {
  EXPECT_FALSE(asks(299.9, 100));
  EXPECT_TRUE(asks(300, 100));
  clock_.stepped(at(1000));
  EXPECT_FALSE(asks(4599.9, 1e9));
  EXPECT_TRUE(asks(4600, 1e9));
}

// Claim: the time begins anew once one member has worked for a second, or moved 64 KiB, since it began. What
// many members do while they wait does not add up.
TEST_F(StallClockTest, WorkAndDataAreSignsOfLife) {
  for (int tick = 0; tick <= 1790; ++tick) {
    const auto done = static_cast<std::uint64_t>(tick) / 2;
    for (const std::uint64_t node : {2U, 3U, 4U, 5U})
      clock_.beat(NodeId(node), {.work_ms = 5000 + done, .bytes = 70 * done}, at(0.1 * tick));
  }
  EXPECT_TRUE(asks(180)) << "0.5 % of the time, and 62 kB";

  clock_.beat(NodeId(2), {.work_ms = 5895, .bytes = 62'650}, at(181));
  clock_.beat(NodeId(2), {.work_ms = 5895 + 999, .bytes = 62'650 + 65'535}, at(200));
  EXPECT_EQ(clock_.next_look(), at(540));
  clock_.beat(NodeId(2), {.work_ms = 5895 + 1000, .bytes = 62'650}, at(201));
  EXPECT_EQ(clock_.next_look(), at(561)) << "it has worked";
  clock_.beat(NodeId(3), {.work_ms = 5895, .bytes = 62'650}, at(201));
  clock_.beat(NodeId(3), {.work_ms = 5895, .bytes = 62'650 + 65'536}, at(202));
  EXPECT_EQ(clock_.next_look(), at(562)) << "it has sent or received";
}

// Claim: a life that begins, and a link that is new, count from what they say first.
TEST_F(StallClockTest, CountsBeginAnew) {
  clock_.beat(NodeId(2), {.work_ms = 1'000'000, .bytes = 1'000'000}, at(1));
  EXPECT_EQ(clock_.next_look(), at(180));
  clock_.beat(NodeId(2), {.work_ms = 1'000'000, .bytes = 10}, at(2));
  clock_.beat(NodeId(2), {.work_ms = 1'000'000, .bytes = 65'545}, at(3));
  EXPECT_EQ(clock_.next_look(), at(180));
  clock_.beat(NodeId(2), {.work_ms = 1'000'000, .bytes = 65'546}, at(4));
  EXPECT_EQ(clock_.next_look(), at(184));
  clock_.gone(NodeId(2));
  clock_.beat(NodeId(2), {.work_ms = 5'000'000, .bytes = 5'000'000}, at(5));
  EXPECT_EQ(clock_.next_look(), at(184));
}

// Claim: while no step is expected, the run does not stand still. The time begins anew when one is expected
// again, and is as long as before. A rest that is put off is due a second later.
TEST_F(StallClockTest, RestsAreNoStandstill) {
  ASSERT_TRUE(asks(180));
  clock_.expects(false, at(200));
  EXPECT_FALSE(clock_.next_look());
  EXPECT_FALSE(asks(10'000));
  clock_.expects(true, at(10'000));
  clock_.expects(true, at(10'100));
  EXPECT_FALSE(asks(10'359.9));
  EXPECT_TRUE(clock_.is_due(0, at(10'360)));
  clock_.put_off(at(10'360));
  EXPECT_FALSE(asks(10'360.9));
  EXPECT_TRUE(asks(10'361));
}

// Claim: a caller that comes at next_look() comes once more only when the time is over.
TEST_F(StallClockTest, LooksAreFew) {
  EXPECT_EQ(clock_.next_look(), at(180));
  EXPECT_FALSE(asks(180, 100));
  EXPECT_EQ(clock_.next_look(), at(300));
  EXPECT_TRUE(asks(300, 100));
}

}  // namespace
}  // namespace gossamer::cluster
