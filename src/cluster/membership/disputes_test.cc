// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/disputes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gossamer::cluster {
namespace {

// Five members, all heard. Those with smaller numbers are older. A member that goes begins anew, as the
// youngest.
class DisputesTest : public ::testing::Test {
 protected:
  using Accusations = std::map<NodeId, std::set<NodeId>>;

  DisputesTest() {
    for (const NodeId node : {kA, kB, kC, kD, kE}) begin(node);
  }

  void begin(NodeId node) { heard_[node] = ++last_; }
  // Lets time pass with ten beats a second, and returns the members that had to go, in order. A member
  // without accusations says that it reaches all.
  std::vector<NodeId> beats(const Accusations& accusations, double seconds) {
    std::vector<NodeId> gone;
    for (int beat = 0; beat < static_cast<int>(10 * seconds); ++beat) {
      for (const auto& [node, life] : std::map(heard_)) {
        const auto said = accusations.find(node);
        disputes_.says(node, said == accusations.end() ? std::set<NodeId>() : said->second, now_);
        while (const auto loser = disputes_.settle(heard_, {}, now_)) {
          gone.push_back(loser->node);
          disputes_.gone(loser->node);
          begin(loser->node);
        }
      }
      now_ = now_ + from_milliseconds(100);
    }
    return gone;
  }

  // Each pair spoils three views: the first says that the second breaks rules.
  std::vector<NodeId> quarrel(const std::vector<std::pair<NodeId, NodeId>>& pairs) {
    for (int i = 0; i < Disputes::kQuarrels; ++i) {
      ++epoch_;
      for (const auto& [by, of] : pairs) disputes_.quarrels(by, of, epoch_, Epoch(epoch_), now_);
    }
    return beats({}, 0.2);
  }

  static constexpr NodeId kA{2}, kB{3}, kC{4}, kD{5}, kE{6};
  Disputes disputes_;
  std::uint64_t epoch_ = 10;
  std::map<NodeId, Incarnation> heard_;
  Incarnation last_;
  Instant now_;
};

using Gone = std::vector<NodeId>;

// Claim: an accusation that does not last long enough costs nobody anything. After that, the younger of two
// goes.
TEST_F(DisputesTest, RipensAndTheYoungerGoes) {
  EXPECT_EQ(beats({{kA, {kB}}}, 6.9), Gone());
  EXPECT_EQ(beats({}, 0.1), Gone());
  EXPECT_EQ(beats({{kA, {kB}}}, 7.0), Gone());
  EXPECT_EQ(beats({{kA, {kB}}}, 0.2), Gone{kB});
}

// Claim: a member that accuses one innocent after another has one fenced and goes itself at the second. Its
// next lives are younger than all others, so they harm nobody.
TEST_F(DisputesTest, OneAccuserAfterAnother) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kA, {kB}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kA});
}

// Claim: the same happens if the second innocent is another life of the first.
TEST_F(DisputesTest, OneThatAccusesTheSameAgain) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kA});
}

// Claim: a member that lets the others accuse it goes at the second just as well.
TEST_F(DisputesTest, OneThatIsSilentToOneAfterAnother) {
  EXPECT_EQ(beats({{kC, {kA}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kD, {kA}}}, 7.2), Gone{kA});
}

// Claim: a member goes, too, if one life accuses it and it then accuses the next life of that node.
TEST_F(DisputesTest, OneThatIsSilentAndAccusesTheSameThen) {
  EXPECT_EQ(beats({{kC, {kA}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kA});
}

// Claim: a member goes, too, if its next accusation begins before the first has ripened.
TEST_F(DisputesTest, OneThatAccusesInHaste) {
  EXPECT_EQ(beats({{kA, {kC}}}, 6.8), Gone());
  EXPECT_EQ(beats({{kA, {kC, kD}}}, 0.5), Gone{kA});
}

// Claim: two members that accuse the same ones together have one fenced. At the second they go themselves.
TEST_F(DisputesTest, TwoAccusers) {
  EXPECT_EQ(beats({{kA, {kC}}, {kB, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kD}}, {kB, {kD}}}, 7.2), (Gone{kB, kA}));
}

// Claim: a member that accuses all others goes. The others do not suffer for it in their next disputes.
TEST_F(DisputesTest, WhoAccusesAll) {
  EXPECT_EQ(beats({{kA, {kB, kC, kD, kE}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kE, {kB}}}, 7.2), Gone{kE});
}

// Claim: one side of a network that falls apart stays whole, though not all members notice at once.
TEST_F(DisputesTest, NetworkFallsApart) {
  const Accusations all{
      {kA, {kD, kE}}, {kB, {kD, kE}}, {kC, {kD, kE}}, {kD, {kA, kB, kC}}, {kE, {kA, kB, kC}}};
  Accusations first{all};
  for (const NodeId late : {kB, kE}) first.erase(late);
  EXPECT_EQ(beats(first, 0.5), Gone());
  EXPECT_EQ(beats(all, 6.8), (Gone{kE, kD}));
}

// Claim: the words of others count: a member out of reach for two goes, even if both are younger.
TEST_F(DisputesTest, OutOfReachForTwo) { EXPECT_EQ(beats({{kD, {kA}}, {kE, {kA}}}, 7.2), Gone{kA}); }

// Claim: a dispute with a member that is not heard waits. A dispute that begins anew needs its whole time
// again.
TEST_F(DisputesTest, Anew) {
  const Incarnation life = heard_.at(kB);
  heard_.erase(kB);
  EXPECT_EQ(beats({{kA, {kB}}}, 20), Gone());
  heard_[kB] = life;
  disputes_.anew(kB);
  EXPECT_EQ(beats({{kA, {kB}}}, 7.0), Gone());
  disputes_.all_anew();
  EXPECT_TRUE(disputes_.none());
  EXPECT_EQ(beats({{kA, {kB}}}, 7.0), Gone());
  EXPECT_EQ(beats({{kA, {kB}}}, 0.2), Gone{kB});
}

// Claim: the cost of a member's word is forgotten with its life.
TEST_F(DisputesTest, ForgottenWithTheLife) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  disputes_.gone(kA);
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kD});
}

// Claim: two whose link ends in three views, as one says each time that the other broke another rule, have a
// dispute at once. Without other differences the younger goes. Many words about one view count once, old ones
// not at all, nor does a link that ends without a rule that was broken.
TEST_F(DisputesTest, QuarrelsAreCounted) {
  const auto ripe = [&] {
    return disputes_.quarrel_is_ripe([&](NodeId node) { return heard_.contains(node); });
  };
  std::uint64_t times = 0;
  for (const std::uint64_t epoch : {1U, 1U, 1U, 2U, 2U})
    disputes_.quarrels(kA, kB, ++times, Epoch(epoch), now_);
  disputes_.quarrels(kA, kB, times, Epoch(3), now_);
  EXPECT_FALSE(ripe());
  EXPECT_EQ(beats({}, 60), Gone());
  now_ = now_ + Disputes::kQuarrelForgotten;
  disputes_.quarrels(kA, kB, ++times, Epoch(4), now_);
  disputes_.quarrels(kA, kB, ++times, Epoch(5), now_);
  EXPECT_FALSE(ripe());
  disputes_.all_anew();
  disputes_.quarrels(kA, kB, ++times, Epoch(6), now_);
  EXPECT_TRUE(ripe());
  const Incarnation life = heard_.at(kA);
  heard_.erase(kA);
  EXPECT_FALSE(ripe()) << "nothing can be settled";
  heard_[kA] = life;
  EXPECT_EQ(beats({}, 0.2), Gone{kB});
  EXPECT_TRUE(disputes_.none());
}

// Claim: a member that breaks rules towards one after another goes at the second, and so does a member that
// only says so. Two that quarrel in each of their lives go in turn.
TEST_F(DisputesTest, QuarrelsAreRemembered) {
  EXPECT_EQ(quarrel({{kE, kB}}), Gone{kE}) << "B breaks rules, E says so and is younger";
  EXPECT_EQ(quarrel({{kD, kB}}), Gone{kB});
  EXPECT_EQ(quarrel({{kD, kB}}), Gone{kB}) << "its next life is the youngest";
  EXPECT_EQ(quarrel({{kD, kB}}), Gone{kD}) << "in turn";
  EXPECT_EQ(quarrel({{kA, kC}}), Gone{kC}) << "A only says so";
  EXPECT_EQ(quarrel({{kA, kD}}), Gone{kA});
}

// Claim: a member that breaks rules towards many goes, and its next lives go, too, one for each of them: the
// word of the many has cost nothing yet.
TEST_F(DisputesTest, QuarrelsWithMany) {
  EXPECT_EQ(quarrel({{kA, kC}, {kB, kC}}), Gone{kC});
  EXPECT_EQ(quarrel({{kA, kC}}), Gone{kC});
  EXPECT_EQ(quarrel({{kB, kC}}), Gone{kC});
  EXPECT_EQ(quarrel({{kA, kC}}), Gone{kA}) << "in turn";
  EXPECT_EQ(quarrel({{kB, kC}}), Gone{kC}) << "it has cost A a life";
}

// Claim: one in whose place another went is the next to go, though it is older.
TEST_F(DisputesTest, WhoWasFavouredGoesNext) {
  EXPECT_EQ(quarrel({{kA, kB}}), std::vector{kB});
  begin(kB);
  disputes_.gone(kA);
  EXPECT_EQ(quarrel({{kA, kC}}), std::vector{kC});
  for (const std::uint64_t epoch : {71U, 72U, 73U}) disputes_.quarrels(kA, kE, epoch, Epoch(epoch), now_);
  disputes_.favoured(kA, kC, now_);
  EXPECT_EQ(beats({}, 1), Gone()) << "other quarrels begin anew";
  now_ = now_ + from_seconds(1);
  EXPECT_EQ(quarrel({{kA, kD}}), std::vector{kA});
}

}  // namespace
}  // namespace gossamer::cluster
