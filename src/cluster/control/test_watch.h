// SPDX-License-Identifier: Apache-2.0
//
// A watch over members that have come, for tests of Watch. Only tests include it. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "base/time.h"
#include "cluster/control/test_leadership.h"
#include "cluster/control/watch.h"

namespace gossamer::cluster {

inline constexpr Patience kTenMinutes{from_seconds(600), from_seconds(600)};
inline const Watch::CanLose kMayLoseAny = [](const std::set<NodeId>&) { return true; };
inline const Watch::CanLose kMayLoseNone = [](const std::set<NodeId>&) { return false; };

// A serving member that has come and was heard at the beginning.
inline LedMember& add_living(TestLeadership& around, Watch& watch, std::uint64_t node) {
  LedMember& member = around.add(node, membership::SERVING);
  watch.expect(member, {});
  watch.come(member, {});
  watch.heard(member, {});
  watch.schedule(member);
  return member;
}

class WatchOfMembers : public ::testing::Test {
 protected:
  LedMember& living(std::uint64_t node) { return add_living(around_, watch_, node); }

  TestLeadership around_;
  Watch watch_{around_.shared(), around_.links, {}, {}};
};

}  // namespace gossamer::cluster
