// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/control/member_links.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::cluster {
namespace {

// Members 2 and 3, and the coordinator, which relays. Member 3 has opened its link with member 2.
class MemberReroute : public net::LinksTest {
 protected:
  MemberReroute() {
    net::Links::Options relaying;
    relaying.relays = true;
    nodes_.push_back(std::make_unique<net::Node>(timeline_, internet_, 1, 1, "run", "", std::move(relaying)));
    older_ = &start(2, 2);
    younger_ = &start(3, 3);
    for (net::Node* const member : {older_, younger_}) {
      member->links->trust_relay(kCoordinatorNode);
      join(*member, *nodes_.front());
    }
    join(*younger_, *older_);
    membership::Change change;
    change.set_epoch(1);
    for (const net::Node* const member : {older_, younger_}) {
      membership::MemberRecord& record = *change.add_members();
      record.set_node(member->id.node.value);
      record.set_incarnation(member->id.incarnation.value);
      record.set_state(membership::SERVING);
      *record.mutable_listening() = listening_of(member->address);
    }
    EXPECT_TRUE(view_.apply(change).ok());
    peers_.emplace(MemberLinks::Options{.self = younger_->id, .listening = listening_of(younger_->address)},
                   view_, *younger_->links);
  }

  void cut() {
    internet_.cut("m2", "m3");
    internet_.cut("m3", "m2");
  }
  void heal() {
    internet_.heal("m2", "m3");
    internet_.heal("m3", "m2");
  }
  // How many seconds pass until the link goes this way, as the member looks ten times a second.
  double seconds_until(bool relayed, double most) {
    for (double passed = 0; passed < most; passed += 0.1) {
      const net::LinkStatistics link = younger_->links->statistics(older_->id.node);
      if (link.up && link.relayed_by.has_value() == relayed) return passed;
      peers_->reroute(timeline_.now());
      younger_->used();
      run_for(0.1);
    }
    return most;
  }

  void cut_bulk(const std::string& a, const std::string& b) {
    internet_.cut(a, b, host::Lane::kBulk);
    internet_.cut(b, a, host::Lane::kBulk);
  }
  void heal_bulk(const std::string& a, const std::string& b) {
    internet_.heal(a, b, host::Lane::kBulk);
    internet_.heal(b, a, host::Lane::kBulk);
  }
  // As a member that looks ten times a second; whether it names the other as out of reach at the end.
  bool out_of_reach_after(double seconds) {
    for (double passed = 0; passed < seconds; passed += 0.1) {
      peers_->reroute(timeline_.now());
      (void)peers_->out_of_reach(timeline_.now());
      younger_->used();
      run_for(0.1);
    }
    return peers_->out_of_reach(timeline_.now()).contains(older_->id.node);
  }
  [[nodiscard]] net::LinkStatistics link() const { return younger_->links->statistics(older_->id.node); }

  net::Node* older_ = nullptr;
  net::Node* younger_ = nullptr;
  View view_;
  std::optional<MemberLinks> peers_;
};

// Claim: a member takes the way through the coordinator about 3 s after a cut, so long before a dispute is
// settled. It tries the direct way after 60 s, and then after 120 s.
TEST_F(MemberReroute, ThereAndBack) {
  EXPECT_EQ(seconds_until(true, 5), 5);  // a link that is well stays
  cut();
  EXPECT_NEAR(seconds_until(true, 20), 4, 1.2);
  EXPECT_NEAR(seconds_until(false, 200), 200, 0.2);  // tried at 60 s and at 183 s, in vain
  heal();
  EXPECT_NEAR(seconds_until(false, 400), 230, 5);  // 240 s after the last trial
  EXPECT_EQ(seconds_until(true, 100), 100);
  EXPECT_TRUE(younger_->all<net::LinkEnded>().empty() && older_->all<net::LinkEnded>().empty());
}

// Claim: a bulk lane that is cut without a word goes through the coordinator within 13 s, and the control
// lane stays where it is. What waited arrives. A member with half a link does not reach all.
TEST_F(MemberReroute, BulkAlone) {
  EXPECT_FALSE(out_of_reach_after(5));
  cut_bulk("m2", "m3");
  younger_->send(*older_, host::Lane::kBulk, "late");
  EXPECT_FALSE(out_of_reach_after(10.5));
  EXPECT_FALSE(peers_->reaches_all());
  EXPECT_FALSE(out_of_reach_after(2.5));
  EXPECT_TRUE(link().lane(host::Lane::kBulk).relayed_by.has_value());
  EXPECT_FALSE(link().relayed_by.has_value());
  EXPECT_TRUE(peers_->reaches_all());
  EXPECT_EQ(older_->bodies(host::Lane::kBulk), std::vector<std::string>{"late"});
  EXPECT_TRUE(younger_->all<net::LinkBroken>().empty());
}

// Claim: a path that is cut takes both lanes. Once the control lane has left it, a bulk lane on which nothing
// comes follows, and does not wait 10 s for the end of its connection.
TEST_F(MemberReroute, BulkFollowsControl) {
  EXPECT_FALSE(out_of_reach_after(5));
  cut();
  younger_->send(*older_, host::Lane::kBulk, "late");
  EXPECT_FALSE(out_of_reach_after(7));
  EXPECT_TRUE(link().relayed_by.has_value());
  EXPECT_TRUE(link().lane(host::Lane::kBulk).relayed_by.has_value());
  EXPECT_EQ(older_->bodies(host::Lane::kBulk), std::vector<std::string>{"late"});
}

// Claim: a member whose bulk lane is gone, relayed or not, is out of reach once messages have waited for two
// minutes. Without a message it is not, and it is not as soon as the lane is back.
TEST_F(MemberReroute, BulkGoneForLong) {
  cut_bulk("m1", "m3");
  cut_bulk("m2", "m3");
  EXPECT_FALSE(out_of_reach_after(300));
  EXPECT_FALSE(peers_->reaches_all());
  younger_->send(*older_, host::Lane::kBulk, "late");
  EXPECT_FALSE(out_of_reach_after(119));
  EXPECT_TRUE(out_of_reach_after(3));
  heal_bulk("m1", "m3");
  heal_bulk("m2", "m3");
  EXPECT_FALSE(out_of_reach_after(15));
  EXPECT_EQ(older_->bodies(host::Lane::kBulk), std::vector<std::string>{"late"});
}

// Claim: a member that has lost all of its bulk lanes names them all once messages have waited for one. It
// would else look no worse than its partner.
TEST_F(MemberReroute, NamesAllBulkLanesThatAreGone) {
  net::Node& third = start(4, 4);
  third.links->trust_relay(kCoordinatorNode);
  join(third, *nodes_.front());
  membership::Change change;
  change.set_from(1);
  change.set_epoch(2);
  membership::MemberRecord& record = *change.add_members();
  record.set_node(4);
  record.set_incarnation(4);
  record.set_state(membership::SERVING);
  *record.mutable_listening() = listening_of(third.address);
  ASSERT_TRUE(view_.apply(change).ok());
  peers_->view_changed(timeline_.now());
  join(third, *younger_);
  EXPECT_TRUE(peers_->up(third.id, timeline_.now()));
  EXPECT_FALSE(out_of_reach_after(5));
  for (const char* const other : {"m1", "m2", "m4"}) cut_bulk(other, "m3");
  EXPECT_FALSE(out_of_reach_after(60));
  younger_->send(*older_, host::Lane::kBulk, "late");
  EXPECT_FALSE(out_of_reach_after(119));
  EXPECT_EQ(peers_->out_of_reach(timeline_.now()), std::set<NodeId>());
  EXPECT_TRUE(out_of_reach_after(3));
  EXPECT_EQ(peers_->out_of_reach(timeline_.now()), (std::set<NodeId>{older_->id.node, third.id.node}));
}

// Claim: without the coordinator nothing is relayed. So the two minutes begin anew when it is back.
TEST_F(MemberReroute, BulkWaitsAnewWithTheRelay) {
  cut_bulk("m1", "m3");
  cut_bulk("m2", "m3");
  younger_->send(*older_, host::Lane::kBulk, "late");
  EXPECT_FALSE(out_of_reach_after(119));
  peers_->relay_is_back(timeline_.now());
  EXPECT_FALSE(out_of_reach_after(115));
  EXPECT_TRUE(out_of_reach_after(20));
}

// Claim: a control lane that is cut alone goes through the coordinator after 3 s, and the bulk lane stays.
// The bulk lane's frames do not hide the silence.
TEST_F(MemberReroute, ControlAlone) {
  EXPECT_FALSE(out_of_reach_after(5));
  internet_.cut("m2", "m3", host::Lane::kControl);
  internet_.cut("m3", "m2", host::Lane::kControl);
  EXPECT_FALSE(out_of_reach_after(2.5));
  EXPECT_FALSE(out_of_reach_after(4));
  EXPECT_TRUE(link().relayed_by.has_value());
  EXPECT_FALSE(link().lane(host::Lane::kBulk).relayed_by.has_value());
  EXPECT_TRUE(younger_->all<net::BulkBroken>().empty());
}

}  // namespace
}  // namespace gossamer::cluster
