// SPDX-License-Identifier: Apache-2.0
//
// Which members a coordinator misses after a takeover.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cluster/control/test_leadership.h"
#include "cluster/control/watch.h"

namespace gossamer::cluster {
namespace {

// A coordinator that took over members 10, 11 ..., all of which listen on machines of their own. The first
// ones have come, and say from the first second on that they reach none of the others.
class TakenOver {
 public:
  TakenOver(std::uint64_t members, std::uint64_t come) {
    around_.options.machine = "here";
    membership::Listening listening;
    for (membership::Address* address : {listening.mutable_control(), listening.mutable_bulk()}) {
      address->set_host("10.0.0.1");
      address->set_port(1);
    }
    for (std::uint64_t node = 10; node < 10 + members; ++node) {
      LedMember& added = around_.add(node, membership::SERVING);
      added.record.set_machine("machine " + std::to_string(node));
      *added.record.mutable_listening() = listening;
      watch_.expect(added, {});
      if (node >= 10 + come) silent_.insert(NodeId(node));
    }
    for (std::uint64_t node = 10; node < 10 + come; ++node) {
      watch_.come(member(node), {});
      watch_.heard(member(node), {});
      watch_.says(NodeId(node), {.unreachable = silent_}, at(1));
    }
  }
  membership::MemberRecord& record(std::uint64_t node) { return member(node).record; }
  // The members that are fenced `now` because they did not come.
  std::vector<NodeId> missing(Instant now) { return watch_.missing(now); }
  void says_nothing(std::uint64_t node, Instant now) { watch_.says(NodeId(node), {}, now); }
  void says_it_again(std::uint64_t node, Instant now) {
    watch_.says(NodeId(node), {.unreachable = silent_}, now);
  }

 private:
  LedMember& member(std::uint64_t node) { return around_.run.members.at(NodeId(node)); }

  TestLeadership around_;
  Watch watch_{around_.shared(), around_.links, {}, {}};
  std::set<NodeId> silent_;
};

// Claim: members that did not come after a takeover are fenced if at least as many came, and reach none of
// them. Fewer do not speak for them: they may be cut off together.
TEST(WatchAfterATakeover, FewDoNotSpeakForMany) {
  EXPECT_EQ(TakenOver(4, 2).missing(at(2)), (std::vector{NodeId(12), NodeId(13)}));
  EXPECT_EQ(TakenOver(5, 2).missing(at(2)), std::vector<NodeId>{});
  EXPECT_EQ(TakenOver(5, 3).missing(at(2)), (std::vector{NodeId(13), NodeId(14)}));
  EXPECT_EQ(TakenOver(3, 1).missing(at(60)), std::vector<NodeId>{});
}

// Claim: all that came must have said for a second that they reach a missing member. One may find the new
// coordinator later than the others do.
TEST(WatchAfterATakeover, ForASecond) {
  TakenOver run(4, 3);
  EXPECT_EQ(run.missing(at(1)), std::vector<NodeId>{});
  EXPECT_EQ(run.missing(at(1.999)), std::vector<NodeId>{});
  EXPECT_EQ(run.missing(at(2)), std::vector{NodeId(13)});
  run.says_nothing(11, at(2));
  EXPECT_EQ(run.missing(at(3)), std::vector<NodeId>{}) << "one of them reaches it";
  run.says_it_again(11, at(3));
  EXPECT_EQ(run.missing(at(3.999)), std::vector<NodeId>{});
  EXPECT_EQ(run.missing(at(4)), std::vector{NodeId(13)});
}

// Claim: nobody is fenced while one is missing that none of those that came could ever reach: nothing follows
// from its silence. It listens nowhere, or for its own machine alone.
TEST(WatchAfterATakeover, HiddenMembersAreNotMissed) {
  TakenOver hidden(5, 3);
  hidden.record(14).clear_listening();
  EXPECT_EQ(hidden.missing(at(2)), std::vector<NodeId>{});
  TakenOver local(5, 3);
  local.record(14).mutable_listening()->mutable_control()->set_host("127.0.0.1");
  EXPECT_EQ(local.missing(at(2)), std::vector<NodeId>{});
  local.record(12).set_machine(local.record(14).machine());
  EXPECT_EQ(local.missing(at(2)), (std::vector{NodeId(13), NodeId(14)}));
}

// Claim: members on the coordinator's own machine do not speak for those elsewhere: they are cut off with it.
// They speak for others on that machine.
TEST(WatchAfterATakeover, ItsOwnMachineProvesNothing) {
  TakenOver elsewhere(4, 2);
  elsewhere.record(10).set_machine("here");
  EXPECT_EQ(elsewhere.missing(at(2)), std::vector<NodeId>{}) << "one speaks for two";
  TakenOver alone(3, 2);
  alone.record(10).set_machine("here");
  EXPECT_EQ(alone.missing(at(2)), std::vector{NodeId(12)});
  alone.record(11).set_machine("here");
  EXPECT_EQ(alone.missing(at(2)), std::vector<NodeId>{});
  alone.record(12).set_machine("here");
  EXPECT_EQ(alone.missing(at(2)), std::vector{NodeId(12)});
}

}  // namespace
}  // namespace gossamer::cluster
