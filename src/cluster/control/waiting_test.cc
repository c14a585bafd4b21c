// SPDX-License-Identifier: Apache-2.0
//
// A view that waits: what ends the waiting, alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "cluster/control/test_changes.h"

namespace gossamer::cluster {
namespace {

using Phase = CoordinatorPhase;

class WaitingTest : public ChangesTest {};

// Claim: a silent member that had reported before it fell silent has nothing to say when it is back. The
// waiting ends nevertheless, once all are heard, and does not begin again.
TEST_F(WaitingTest, EndsWhenOneIsBackThatHadReported) {
  serve(2);
  around_.workload.bytes_of_a_thing = std::uint64_t{1} << 40;
  changes_.want_change({});
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 2));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(11)), 2));
  ASSERT_EQ(changes_.phase(), Phase::kShort) << "both have reported, and have no room";
  around_.workload.needed = NodeId(11);
  around_.workload.is_a_loss = true;
  EXPECT_FALSE(changes_.can_lose({NodeId(11)}, {}));
  ASSERT_EQ(changes_.phase(), Phase::kWaiting);
  const auto not_all = [] { return false; };
  for (int s = 1; s < 20; ++s) changes_.tick(not_all, at(s));
  EXPECT_EQ(changes_.phase(), Phase::kWaiting);
  for (int s = 20; s < 30; ++s) {
    changes_.tick(all_heard, at(s));
    EXPECT_EQ(changes_.phase(), Phase::kShort) << s;
  }
}

// Claim: a first view that waits for nobody any more, and then lacks memory, falls short once. It begins no
// view each second.
TEST_F(WaitingTest, OneThatLacksMemoryLooksNoMore) {
  std::string why = "node 11 has a piece";
  around_.options.waits_for = [&why](const View&) { return why; };
  around_.workload.bytes_of_a_thing = 1 << 30;
  LedMember& first = come(10);
  first.record.set_memory_bytes(1);
  changes_.ready(first, {});
  EXPECT_TRUE(rest(first));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  why.clear();
  changes_.tick(all_heard, at(1));
  EXPECT_TRUE(rest(first));
  ASSERT_EQ(changes_.phase(), Phase::kShort);
  const Epoch epoch = around_.run.view.epoch();
  for (int s = 2; s < 30; ++s) {
    changes_.tick(all_heard, at(s));
    EXPECT_EQ(changes_.phase(), Phase::kShort) << s;
  }
  EXPECT_EQ(around_.run.view.epoch(), epoch);
}

}  // namespace
}  // namespace gossamer::cluster
