// SPDX-License-Identifier: Apache-2.0
//
// The part of a coordinator that knows which members live, alone. coordinator_test.cc tests it with the
// others.
#include "cluster/control/watch.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cluster/control/test_leadership.h"

namespace gossamer::cluster {
namespace {

class WatchTest : public ::testing::Test {
 protected:
  // A member that has come and was heard at the beginning.
  LedMember& living(std::uint64_t node) {
    LedMember& member = around_.add(node, membership::SERVING);
    watch_.expect(member, {});
    watch_.come(member);
    watch_.heard(member, {});
    watch_.schedule(member);
    return member;
  }

  TestLeadership around_;
  Watch watch_{around_.shared(), around_.links, {}};
};

// Claim: a member that began and does not come is to be fenced after 10 s, and not sooner.
TEST_F(WatchTest, LateMembersAreDue) {
  watch_.expect(around_.add(10, membership::JOINING), {});
  EXPECT_EQ(watch_.next_wakeup(), at(10));
  EXPECT_TRUE(watch_.due(at(9.9)).empty());
  const std::vector<Fencing> due = watch_.due(at(10));
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].nodes, std::vector{NodeId(10)});
  EXPECT_FALSE(watch_.next_wakeup().has_value());
}

// Claim: a member whose connection closed is to be fenced 0.25 s later, if others are heard meanwhile.
TEST_F(WatchTest, SilentMembersAreDue) {
  LedMember& silent = living(10);
  LedMember& other = living(11);
  watch_.closed(silent, {});
  watch_.schedule(silent);
  std::vector<std::pair<int, NodeId>> due;
  for (int ms = 0; ms < 400; ++ms) {
    const Instant now = Instant{} + from_milliseconds(ms);
    if (ms % 50 == 0) {
      watch_.heard(other, now);
      watch_.schedule(other);
    }
    for (const Fencing& one : watch_.due(now)) {
      for (const NodeId node : one.nodes) due.emplace_back(ms, node);
    }
  }
  EXPECT_EQ(due, (std::vector{std::pair{250, NodeId(10)}}));
}

// Claim: while nobody at all is heard, nobody is to be fenced, and an event says so once.
TEST_F(WatchTest, SilenceOfAllIsOurOwn) {
  living(10);
  living(11);
  for (int ms = 0; ms < 5000; ++ms)
    EXPECT_TRUE(watch_.due(Instant{} + from_milliseconds(ms)).empty()) << ms << " ms";
  EXPECT_EQ(around_.events(), std::vector<std::string>{"cut_off"});
}

}  // namespace
}  // namespace gossamer::cluster
