// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/view.h"

#include <gtest/gtest.h>

#include <vector>

#include "cluster/control/view_teller.h"

namespace gossamer::cluster {
namespace {

using membership::Change;

void add(Change& change, std::uint64_t node, std::uint64_t incarnation) {
  membership::MemberRecord& record = *change.add_members();
  record.set_node(node);
  record.set_incarnation(incarnation);
  record.set_state(membership::SERVING);
}
void fence(Change& change, std::uint64_t first, std::uint64_t last) {
  membership::FencedRun& run = *change.add_fenced();
  run.set_first(first);
  run.set_last(last);
}
Change change(std::uint64_t from, std::uint64_t epoch) {
  Change made;
  made.set_from(from);
  made.set_epoch(epoch);
  return made;
}

// Claim: differences lead to the same view as the whole view does, and fenced members are gone.
TEST(View, DifferencesAndWholeAgree) {
  View stepwise;
  Change first = change(0, 1);
  add(first, 2, 2);
  add(first, 3, 3);
  ASSERT_TRUE(stepwise.follows(first));
  ASSERT_TRUE(stepwise.apply(first).ok());
  Change second = change(1, 2);
  fence(second, 3, 3);
  add(second, 4, 5);
  ASSERT_TRUE(stepwise.apply(second).ok());
  EXPECT_EQ(stepwise.members().size(), 2u);
  EXPECT_EQ(stepwise.find({NodeId(3), Incarnation(3)}), nullptr);
  EXPECT_NE(stepwise.find({NodeId(4), Incarnation(5)}), nullptr);
  EXPECT_EQ(stepwise.find({NodeId(4), Incarnation(4)}), nullptr) << "another life";

  View at_once;
  ASSERT_TRUE(at_once.apply(stepwise.whole()).ok());
  EXPECT_EQ(at_once.bytes(), stepwise.bytes());
  EXPECT_EQ(at_once.epoch(), Epoch(2));
}

// Claim: an expelled node is gone, stays expelled in later views, and no life of it comes back. Differences
// and the whole view agree. The coordinator cannot be expelled.
TEST(View, Expelled) {
  View view;
  Change first = change(0, 1);
  add(first, 2, 2);
  add(first, 3, 3);
  ASSERT_TRUE(view.apply(first).ok());
  Change second = change(1, 2);
  second.add_expelled(3);
  second.add_expelled(9);
  ASSERT_TRUE(view.apply(second).ok());
  ASSERT_TRUE(view.apply(change(2, 3)).ok());
  EXPECT_EQ(view.expelled(), (std::set{NodeId(3), NodeId(9)}));
  EXPECT_EQ(view.members().size(), 1u);
  EXPECT_EQ(view.lives({NodeId(3), Incarnation(7)}).error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(view.lives({NodeId(4), Incarnation(7)}).ok());
  View at_once;
  ASSERT_TRUE(at_once.apply(view.whole()).ok());
  EXPECT_EQ(at_once.bytes(), view.bytes());
  Change back = change(3, 4);
  add(back, 3, 8);
  EXPECT_EQ(view.apply(back).error().kind, ErrorKind::kBadData);
  Change coordinator = change(3, 4);
  coordinator.add_expelled(1);
  EXPECT_EQ(view.apply(coordinator).error().kind, ErrorKind::kBadData);
}

// Claim: only the next difference, or a whole view of a later epoch, follows.
TEST(View, KnowsWhatFollows) {
  View view;
  ASSERT_TRUE(view.apply(change(0, 5)).ok());
  EXPECT_TRUE(view.follows(change(5, 6)));
  EXPECT_TRUE(view.follows(change(5, 9)));
  EXPECT_TRUE(view.follows(change(0, 6)));
  EXPECT_FALSE(view.follows(change(4, 6)));
  EXPECT_FALSE(view.follows(change(6, 7)));
  EXPECT_FALSE(view.follows(change(5, 5)));
  EXPECT_FALSE(view.follows(change(0, 5)));
}

// Claim: a change that makes no valid view is refused, and the old view stays.
TEST(View, RefusesWhatIsNone) {
  View view;
  Change first = change(0, 1);
  add(first, 2, 2);
  ASSERT_TRUE(view.apply(first).ok());
  const std::string before = view.bytes();
  std::vector<Change> wrong(6, change(1, 2));
  add(wrong[0], 0, 3);
  add(wrong[1], 3, 0);
  fence(wrong[2], 3, 3);
  add(wrong[2], 3, 3);
  fence(wrong[3], 4, 3);
  fence(wrong[4], 1, UINT64_MAX);
  add(wrong[5], kCoordinatorNode.value, 3);
  for (const Change& one : wrong) {
    const auto applied = view.apply(one);
    ASSERT_FALSE(applied.ok());
    EXPECT_EQ(applied.error().kind, ErrorKind::kBadData);
    EXPECT_EQ(view.bytes(), before);
  }
}

// Claim: a life goes on unless it is fenced, or another life of its node is in the view.
TEST(View, KnowsWhoLives) {
  View view;
  Change first = change(0, 1);
  add(first, 2, 4);
  fence(first, 3, 3);
  ASSERT_TRUE(view.apply(first).ok());
  EXPECT_TRUE(view.lives({NodeId(2), Incarnation(4)}).ok());
  EXPECT_TRUE(view.lives({NodeId(3), Incarnation(5)}).ok());
  EXPECT_EQ(view.lives({NodeId(2), Incarnation(3)}).error().kind, ErrorKind::kRefused);
  EXPECT_EQ(view.lives({NodeId(2), Incarnation(5)}).error().kind, ErrorKind::kBadData);
}

// Claim: addresses survive the way into messages and back. A member that listens nowhere is recognized.
TEST(View, AddressesTravel) {
  const net::PeerAddress address{.node = NodeId(7), .control = {"h", 1}, .bulk = {"h", 2}};
  const membership::Listening listening = listening_of(address);
  EXPECT_TRUE(listens(listening));
  EXPECT_FALSE(listens({}));
  EXPECT_EQ(address_of(NodeId(7), listening).bulk, address.bulk);
}

// Claim: a loopback address is for members on the same machine, and any other for all. A member that listens
// nowhere is reached by nobody.
TEST(View, LoopbackStaysOnItsMachine) {
  const auto record = [](const char* machine, const char* host) {
    membership::MemberRecord one;
    one.set_machine(machine);
    if (host != nullptr)
      *one.mutable_listening() = listening_of({.node = NodeId(2), .control = {host, 1}, .bulk = {host, 2}});
    return one;
  };
  const auto here = record("here", "127.0.0.1");
  const auto beside = record("here", "localhost");
  const auto there = record("there", "10.0.0.2");
  const auto hidden = record("here", nullptr);
  EXPECT_TRUE(reaches(here, beside) && reaches(beside, here) && reaches(hidden, here));
  EXPECT_TRUE(reaches(here, there) && reaches(hidden, there));
  EXPECT_FALSE(reaches(there, here) || reaches(there, beside));
  EXPECT_FALSE(reaches(here, hidden) || reaches(there, hidden));
}

// Claim: a member that is behind gets the differences from its own epoch on, and none if it is too far
// behind.
TEST(ViewHistory, Since) {
  ViewHistory history;
  for (std::uint64_t epoch = 1; epoch <= 300; ++epoch) history.add(change(epoch - 1, epoch));
  const std::vector<Change> last = history.since(Epoch(298));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last.front().epoch(), 299u);
  EXPECT_EQ(last.back().epoch(), 300u);
  EXPECT_TRUE(history.since(Epoch(300)).empty());
  EXPECT_TRUE(history.since(Epoch(0)).empty());
  EXPECT_EQ(history.since(Epoch(300 - ViewHistory::kMost)).size(), ViewHistory::kMost);
  EXPECT_TRUE(history.since(Epoch(299 - ViewHistory::kMost)).empty());
}

}  // namespace
}  // namespace gossamer::cluster
