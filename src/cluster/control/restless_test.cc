// SPDX-License-Identifier: Apache-2.0
//
// Members that do not come to rest: which of them the coordinator's changes name, and when.
#include <gtest/gtest.h>

#include <set>

#include "cluster/control/test_changes.h"

namespace gossamer::cluster {
namespace {

class RestlessTest : public ChangesTest {};

// Claim: members that do not rest in time are named once.
TEST_F(RestlessTest, RestlessMembers) {
  LedMember& first = come(10);
  LedMember& second = come(11);
  changes_.ready(first, {});
  changes_.ready(second, {});
  EXPECT_TRUE(rest(first));
  const auto all = [](NodeId) { return true; };
  EXPECT_TRUE(changes_.take_restless({all}, at(100)).empty()) << "the store has the change not yet";
  around_.store();
  EXPECT_TRUE(changes_.take_restless({all}, at(29)).empty());
  EXPECT_TRUE(changes_.take_restless({all}, at(30)).empty()) << "nobody rests that could go on";
  EXPECT_TRUE(rest(first));
  EXPECT_EQ(changes_.take_restless({all}, at(60)), std::set{NodeId(11)});
}

// Claim: a late member is not named while the others lack what it alone has, before the patience is over.
TEST_F(RestlessTest, ALateMemberIsNeeded) {
  one_of_two_rests();
  const auto all = [](NodeId) { return true; };
  around_.workload.needed = NodeId(11);
  for (int s = 30; s < 600; ++s) EXPECT_TRUE(changes_.take_restless({all}, at(s)).empty()) << s;
  EXPECT_EQ(changes_.take_restless({all}, at(600)), std::set{NodeId(11)});
  around_.workload.needed.reset();
  EXPECT_EQ(changes_.take_restless({all}, at(601)), std::set{NodeId(11)});
}

// Claim: a silent member is late, too. It is named if the others can go on without it, and never else.
TEST_F(RestlessTest, ASilentMemberIsLate) {
  one_of_two_rests();
  const auto first_alone = [](NodeId node) { return node == NodeId(10); };
  around_.workload.needed = NodeId(11);
  for (int s = 30; s < 2000; ++s) EXPECT_TRUE(changes_.take_restless({first_alone}, at(s)).empty()) << s;
  around_.workload.needed.reset();
  EXPECT_EQ(changes_.take_restless({first_alone}, at(2000)), std::set{NodeId(11)});
}

// Claim: a late member is not named because another had everything that has reported and is silent since.
TEST_F(RestlessTest, TheSilentDoNotGoOn) {
  one_of_two_rests();
  const auto second_alone = [](NodeId node) { return node == NodeId(11); };
  for (int s = 30; s < 600; ++s) EXPECT_TRUE(changes_.take_restless({second_alone}, at(s)).empty()) << s;
  const auto all = [](NodeId) { return true; };
  EXPECT_EQ(changes_.take_restless({all}, at(601)), std::set{NodeId(11)});
}

// Claim: a member that hangs alone in its view is given up, too, if another one is heard that waits to serve.
// It is not while nobody could go on.
TEST_F(RestlessTest, OneThatHangsAloneKeepsNobodyOut) {
  changes_.ready(come(10), {});
  around_.store();
  const auto all = [](NodeId) { return true; };
  for (int s = 1; s < 700; ++s) EXPECT_TRUE(changes_.take_restless({all}, at(s)).empty()) << s;
  changes_.ready(come(11), at(700));
  const auto first_alone = [](NodeId node) { return node == NodeId(10); };
  EXPECT_TRUE(changes_.take_restless({first_alone}, at(700)).empty()) << "the other one may be dead";
  EXPECT_EQ(changes_.take_restless({all}, at(702)), std::set{NodeId(10)});
}

// Claim: the ten minutes of one that hangs go on while others die and all are asked anew.
TEST_F(RestlessTest, DeathsGiveOneThatHangsNoTime) {
  serve(3);
  around_.workload.needed = NodeId(11);
  changes_.want_change({});
  around_.store();
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 3));
  const auto all = [](NodeId) { return true; };
  for (int s = 1; s < 300; ++s) EXPECT_TRUE(changes_.take_restless({all}, at(s)).empty()) << s;
  fence(12, Changes::Fenced::kInView, at(300));
  EXPECT_TRUE(rest(around_.run.members.at(NodeId(10)), 3));
  for (int s = 301; s < 600; ++s) EXPECT_TRUE(changes_.take_restless({all}, at(s)).empty()) << s;
  EXPECT_EQ(changes_.take_restless({all}, at(601)), std::set{NodeId(11)});
}

// Claim: a silent member that is not missed alone is not named, whatever the others can do. One that is heard
// is.
TEST_F(RestlessTest, ASilentMemberIsMissedWithOthers) {
  one_of_two_rests();
  const auto first_alone = [](NodeId node) { return node == NodeId(10); };
  const auto all = [](NodeId) { return true; };
  const auto nobody = [](NodeId) { return false; };
  for (int s = 30; s < 2000; ++s)
    EXPECT_TRUE(changes_.take_restless({first_alone, nobody}, at(s)).empty()) << s;
  for (int s = 2000; s < 2030; ++s) EXPECT_TRUE(changes_.take_restless({all}, at(s)).empty()) << s;
  EXPECT_EQ(changes_.take_restless({all, nobody}, at(2030)), std::set{NodeId(11)});
}

}  // namespace
}  // namespace gossamer::cluster
