// SPDX-License-Identifier: Apache-2.0
#include "net/link/channel_rules.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace gossamer::net {
namespace {

constexpr NodeId kLeadingNode(1);
constexpr PeerId kRuledPeer{NodeId(2), Incarnation(5)};
constexpr std::array kRuleTable{
    ChannelRule{1, Sender::kCoordinator, Lanes::kControl, 100},
    ChannelRule{1, Sender::kJoining, Lanes::kControl, 10},
    ChannelRule{2, Sender::kServing, Lanes::kBoth, 20},
    ChannelRule{3, Sender::kServing, Lanes::kBulk, 20},
};

class ChannelRulesTest : public ::testing::Test {
 protected:
  [[nodiscard]] bool may(PeerId from, host::Lane lane, std::uint32_t channel, std::size_t body = 0,
                         std::uint64_t payload = 0) const {
    wire::Data::Start start;
    start.set_channel(channel);
    start.set_body(std::string(body, 'x'));
    start.set_payload_bytes(payload);
    return !rules_.objection(from, lane, start).has_value();
  }
  ChannelRules rules_{kRuleTable, kLeadingNode};
};

// Claim: a peer may send what a row for its standing allows, and nothing else.
TEST_F(ChannelRulesTest, Standing) {
  const PeerId leader{kLeadingNode, Incarnation(1)};
  rules_.set_serving({kRuledPeer});
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kControl, 2));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kControl, 1));
  EXPECT_FALSE(may({kRuledPeer.node, Incarnation(6)}, host::Lane::kControl, 2)) << "another life";
  EXPECT_TRUE(may({kRuledPeer.node, Incarnation(6)}, host::Lane::kControl, 1));
  EXPECT_TRUE(may(leader, host::Lane::kControl, 1, 100));
  EXPECT_FALSE(may(leader, host::Lane::kControl, 2));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kControl, 9)) << "nobody's channel";
}

// Claim: a row for coordinators is none for members, and the other way round.
TEST_F(ChannelRulesTest, Receivers) {
  constexpr std::array kTable{
      ChannelRule{1, Sender::kServing, Lanes::kControl, 10, Receiver::kCoordinator},
      ChannelRule{2, Sender::kServing, Lanes::kControl, 10, Receiver::kMember},
      ChannelRule{3, Sender::kServing, Lanes::kControl, 10, Receiver::kAny},
  };
  for (const Receiver own : {Receiver::kCoordinator, Receiver::kMember}) {
    rules_ = ChannelRules(kTable, kLeadingNode, own);
    EXPECT_EQ(may(kRuledPeer, host::Lane::kControl, 1), own == Receiver::kCoordinator);
    EXPECT_EQ(may(kRuledPeer, host::Lane::kControl, 2), own == Receiver::kMember);
    EXPECT_TRUE(may(kRuledPeer, host::Lane::kControl, 3));
  }
}

// Claim: an answer may be as large as what was asked for, from the life that was asked alone, and on that
// channel alone. A later question for less does not make an earlier answer a fault.
TEST_F(ChannelRulesTest, Expected) {
  const PeerId later{kRuledPeer.node, Incarnation(6)};
  rules_.set_serving({kRuledPeer, later});
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 2, 0, 1000));
  rules_.expect(kRuledPeer, 2, 1000);
  rules_.expect(kRuledPeer, 2, 5);
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kBulk, 2, 0, 1000));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 2, 1, 1000));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 3, 0, 1000));
  EXPECT_FALSE(may(later, host::Lane::kBulk, 2, 0, 1000));
  rules_.expect(later, 2, 30);
  EXPECT_TRUE(may(later, host::Lane::kBulk, 2, 0, 30));
  EXPECT_FALSE(may(later, host::Lane::kBulk, 2, 0, 31));
  EXPECT_TRUE(may(later, host::Lane::kBulk, 2, 0, 20)) << "what its row says";
}

// Claim: until the view is known, members count as serving.
TEST_F(ChannelRulesTest, BeforeTheView) {
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kControl, 2));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kControl, 1));
}

// Claim: a message goes over a lane of its row.
TEST_F(ChannelRulesTest, Lane) {
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kBulk, 2));
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kBulk, 3));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kControl, 3));
  EXPECT_FALSE(may({kLeadingNode, Incarnation(1)}, host::Lane::kBulk, 1));
}

// Claim: body and payload together are bounded, whatever numbers are announced.
TEST_F(ChannelRulesTest, Bytes) {
  EXPECT_TRUE(may(kRuledPeer, host::Lane::kBulk, 2, 5, 15));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 2, 6, 15));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 2, 0, 21));
  EXPECT_FALSE(may(kRuledPeer, host::Lane::kBulk, 2, 20, std::numeric_limits<std::uint64_t>::max()));
}

// Claim: little waits for a joining member, more for one that serves, and whole parts for it on the bulk
// lane. What waits for a member that reads nothing is at most 50 MB, but for those. There is room for 32
// chunks of 1 MiB and the manifest of the largest file, 500 GiB.
TEST_F(ChannelRulesTest, Waiting) {
  rules_.set_serving({kRuledPeer});
  const PeerId other{NodeId(3), Incarnation(6)};
  EXPECT_LT(rules_.most_queued(other, host::Lane::kControl),
            rules_.most_queued(kRuledPeer, host::Lane::kControl));
  EXPECT_LT(rules_.most_queued(other, host::Lane::kBulk), rules_.most_queued(kRuledPeer, host::Lane::kBulk));
  constexpr std::uint64_t kMostBecauseOfOne = 50'000'000;
  EXPECT_LT(rules_.most_queued(other, host::Lane::kBulk), kMostBecauseOfOne);
  EXPECT_LT(rules_.most_queued(kRuledPeer, host::Lane::kControl), kMostBecauseOfOne);
  constexpr std::uint64_t kManifest = 500ULL * 1024 * 32 + 1024;  // 32 bytes for each chunk, and its name
  constexpr std::uint64_t kHeaders = 33ULL * 128;
  EXPECT_GT(rules_.most_queued(other, host::Lane::kBulk), (32ULL << 20) + kManifest + kHeaders);
  EXPECT_EQ(ChannelRules().most_queued(other, host::Lane::kControl),
            std::numeric_limits<std::uint64_t>::max());
}

// Claim: links without a table carry everything.
TEST(ChannelRules, NoTable) {
  wire::Data::Start start;
  start.set_channel(77);
  EXPECT_FALSE(ChannelRules().objection(kRuledPeer, host::Lane::kBulk, start).has_value());
}

}  // namespace
}  // namespace gossamer::net
