// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member_links.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "cluster/control/test_hello.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {
namespace {

class MemberLinksTest : public ::testing::Test {
 protected:
  static constexpr net::PeerId kSelf{NodeId(2), Incarnation(10)};
  static constexpr net::PeerId kOlder{NodeId(3), Incarnation(9)};
  static constexpr net::PeerId kYounger{NodeId(4), Incarnation(11)};
  static constexpr net::PeerId kHidden{NodeId(5), Incarnation(8)};

  MemberLinksTest() {
    membership::Change change;
    change.set_epoch(1);
    for (const net::PeerId peer : {kSelf, kOlder, kYounger, kHidden}) {
      membership::MemberRecord& record = *change.add_members();
      record.set_node(peer.node.value);
      record.set_incarnation(peer.incarnation.value);
      record.set_state(membership::SERVING);
      if (peer != kHidden) *record.mutable_listening() = listening();
    }
    EXPECT_TRUE(view_.apply(change).ok());
    peers_.view_changed({});
  }

  static membership::Listening listening() {
    membership::Listening listening;
    for (membership::Address* const one : {listening.mutable_control(), listening.mutable_bulk()}) {
      one->set_host("10.0.0.1");
      one->set_port(1);
    }
    return listening;
  }

  Nobody nobody_;
  View view_;
  net::Links links_{nobody_, {.run = "run", .self = kSelf, .program = "test"}};
  MemberLinks peers_{{.self = kSelf, .listening = listening()}, view_, links_};
};

// Claim: the younger of two members opens the link. The older one opens it if it listens nowhere itself.
TEST_F(MemberLinksTest, TheYoungerOpens) {
  EXPECT_TRUE(links_.linked(kOlder.node));
  EXPECT_FALSE(links_.linked(kYounger.node));
  EXPECT_FALSE(links_.linked(kHidden.node));
  EXPECT_FALSE(links_.linked(kSelf.node));
}

// Claim: a member that nobody can reach opens the link to a joining one of which the coordinator tells. Word
// of a joining life under its own number, or the coordinator's, or none opens nothing.
TEST_F(MemberLinksTest, ExpectsOthers) {
  MemberLinks hidden({.self = kSelf}, view_, links_);
  const auto expect = [&](std::uint64_t node) {
    membership::MemberRecord record;
    record.set_node(node);
    record.set_incarnation(12);
    record.set_state(membership::JOINING);
    *record.mutable_listening() = listening();
    hidden.expect(record, {});
    return links_.linked(NodeId(node));
  };
  EXPECT_TRUE(expect(9));
  for (const std::uint64_t node : {kSelf.node.value, kCoordinatorNode.value, std::uint64_t{0}})
    EXPECT_FALSE(expect(node)) << node;
}

// Claim: messages to members of the view are kept while there is no link. Others are refused.
TEST_F(MemberLinksTest, KeepsMessages) {
  EXPECT_TRUE(peers_.send(kYounger, host::Lane::kControl, {}, {}));
  EXPECT_FALSE(peers_.send({kYounger.node, Incarnation(7)}, host::Lane::kControl, {}, {}));
}

// Claim: the end of a link with a member of the view is told until the view changes; that of another life of
// the node is not.
TEST_F(MemberLinksTest, TellsOfLosses) {
  EXPECT_FALSE(peers_.ended({kOlder.node, Incarnation(7)}, {}));
  EXPECT_TRUE(peers_.lost().empty());
  EXPECT_TRUE(peers_.ended(kOlder, {}));
  EXPECT_EQ(peers_.lost(), std::set{kOlder.node});
  peers_.forget_losses();
  EXPECT_TRUE(peers_.lost().empty());
}

// Claim: a link that is parted is told as lost, and comes up again: the peer is not refused. Another life of
// the node is not parted, nor is a peer without a link.
TEST_F(MemberLinksTest, PartsWithoutRefusal) {
  EXPECT_FALSE(peers_.part(kOlder, "too much", {})) << "it was never up";
  EXPECT_TRUE(peers_.up(kOlder, {}));
  EXPECT_FALSE(peers_.part({kOlder.node, Incarnation(7)}, "too much", {}));
  EXPECT_TRUE(links_.linked(kOlder.node));
  EXPECT_TRUE(peers_.part(kOlder, "too much", {}));
  EXPECT_FALSE(links_.linked(kOlder.node));
  EXPECT_EQ(peers_.lost(), std::set{kOlder.node});
  peers_.connect(Instant{} + from_seconds(60));
  EXPECT_TRUE(links_.linked(kOlder.node));
  EXPECT_TRUE(peers_.up(kOlder, {}));
}

// Claim: a peer outside the view is parted, too. It may join, so it is not refused either.
TEST_F(MemberLinksTest, PartsWithAStranger) {
  const net::PeerId joins{NodeId(9), Incarnation(12)};
  membership::MemberRecord record;
  record.set_node(joins.node.value);
  record.set_incarnation(joins.incarnation.value);
  record.set_state(membership::JOINING);
  *record.mutable_listening() = listening();
  MemberLinks hidden({.self = kSelf}, view_, links_);
  hidden.expect(record, {});
  EXPECT_TRUE(hidden.up(joins, {}));
  EXPECT_FALSE(hidden.part(joins, "too much", {})) << "no message of the view is lost";
  EXPECT_FALSE(links_.linked(joins.node));
  EXPECT_TRUE(hidden.lost().empty());
  hidden.connect(Instant{} + from_seconds(60));
  EXPECT_TRUE(links_.linked(joins.node));
}

// Claim: a link with a fenced member is refused as soon as it is up.
TEST_F(MemberLinksTest, RefusesFencedMembers) {
  membership::Change change;
  change.set_from(1);
  change.set_epoch(2);
  change.add_fenced()->set_first(kYounger.incarnation.value);
  change.mutable_fenced(0)->set_last(kYounger.incarnation.value);
  ASSERT_TRUE(view_.apply(change).ok());
  EXPECT_FALSE(peers_.up(kYounger, {}));
  EXPECT_TRUE(peers_.up(kOlder, {}));
}

// Claim: a member whose link does not come up is tried through the coordinator after 3 s, then directly
// again. A member that waits for the other's opening tries nothing.
TEST_F(MemberLinksTest, TriesTheOtherWay) {
  const auto attempts = [this] { return nobody_.connect({}, host::Lane::kControl).value; };
  const std::uint64_t before = attempts();
  for (double seconds = 0; seconds < 2.9; seconds += 0.1) peers_.reroute(Instant{} + from_seconds(seconds));
  EXPECT_EQ(attempts(), before + 1);
  peers_.reroute(Instant{} + from_seconds(3.5));  // there is no relay here: nothing is dialed
  EXPECT_EQ(attempts(), before + 2);
  for (double seconds = 3.6; seconds < 7; seconds += 0.1) peers_.reroute(Instant{} + from_seconds(seconds));
  EXPECT_EQ(attempts(), before + 2 + host::kLanes + 1);  // both lanes, directly
  EXPECT_FALSE(links_.linked(kYounger.node));
}

// Claim: a member opens the link with an older one anew if that one had opened it, has said nothing on it,
// and is gone: it may have ended the link because it expected another life. The older waits for the younger.
TEST_F(MemberLinksTest, OpensALinkThatIsForsaken) {
  const auto forsake = [this](net::PeerId by) {
    const host::ConnectionId connection{by.node.value + 100};
    net::LinkEvents events;
    links_.close(by.node, "the next one is of the other side", {});
    links_.on(knock(connection, by), {}, events);
    links_.on(host::Received{.connection = connection, .frame = net::encode_frame(hello(by, 1))}, {}, events);
    links_.on(host::Closed{connection, Error{.what = "connection reset"}}, {}, events);
    EXPECT_TRUE(links_.linked(by.node));
  };
  const auto attempts = [this] { return nobody_.connect({}, host::Lane::kControl).value; };
  for (const net::PeerId by : {kYounger, kOlder}) {
    forsake(by);
    const std::uint64_t before = attempts();
    peers_.connect(Instant{} + from_seconds(3.9));
    EXPECT_EQ(attempts(), before + 1);
    peers_.connect(Instant{} + from_seconds(4));
    EXPECT_EQ(attempts(), before + 2 + (by == kOlder ? host::kLanes : 0));
  }
}

// Claim: a member is silent once its link has been down for 3 s.
TEST_F(MemberLinksTest, SilentMembers) {
  peers_.up(kOlder, {});
  peers_.down(kOlder.node, {});
  const Instant later = Instant{} + MemberLinks::kUnreachableAfter;
  EXPECT_TRUE(peers_.out_of_reach(Instant{} + from_seconds(2.9)).empty());
  EXPECT_TRUE(peers_.out_of_reach(later).contains(kOlder.node));
}

}  // namespace
}  // namespace gossamer::cluster
