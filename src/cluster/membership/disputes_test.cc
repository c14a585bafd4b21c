// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/disputes.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gossamer::cluster {
namespace {

// Five members, the older the smaller their numbers, all heard; whoever goes begins anew, as the youngest.
class DisputesTest : public ::testing::Test {
 protected:
  using Accusations = std::map<NodeId, std::set<NodeId>>;

  DisputesTest() {
    for (const NodeId node : {kA, kB, kC, kD, kE}) begin(node);
  }

  void begin(NodeId node) { heard_[node] = ++last_; }
  // Ten beats a second for so long; who has to go, one after the other. Who is accused by nobody says
  // nothing.
  std::vector<NodeId> beats(const Accusations& accusations, double seconds) {
    std::vector<NodeId> gone;
    for (int beat = 0; beat < static_cast<int>(10 * seconds); ++beat) {
      for (const auto& [node, life] : std::map(heard_)) {
        const auto said = accusations.find(node);
        disputes_.says(node, said == accusations.end() ? std::set<NodeId>() : said->second, now_);
        while (const auto loser = disputes_.settle(heard_, now_)) {
          gone.push_back(*loser);
          begin(*loser);
        }
      }
      now_ = now_ + from_milliseconds(100);
    }
    return gone;
  }

  static constexpr NodeId kA{2}, kB{3}, kC{4}, kD{5}, kE{6};
  Disputes disputes_;
  std::map<NodeId, Incarnation> heard_;
  Incarnation last_;
  Instant now_;
};

using Gone = std::vector<NodeId>;

// Claim: what is not said for long enough costs nobody anything; then of two the younger goes.
TEST_F(DisputesTest, RipensAndTheYoungerGoes) {
  EXPECT_EQ(beats({{kA, {kB}}}, 6.9), Gone());
  EXPECT_EQ(beats({}, 0.1), Gone());
  EXPECT_EQ(beats({{kA, {kB}}}, 7.0), Gone());
  EXPECT_EQ(beats({{kA, {kB}}}, 0.2), Gone{kB});
}

// Claim: a member that accuses one innocent after another has one fenced; at the second it goes itself. Its
// next lives are younger than all others: they harm nobody.
TEST_F(DisputesTest, OneAccuserAfterAnother) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kA, {kB}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kA});
}

// Claim: so it is if the second is another life of the first.
TEST_F(DisputesTest, OneThatAccusesTheSameAgain) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kA});
}

// Claim: it makes no difference whether it says that it does not reach them or lets them say it.
TEST_F(DisputesTest, OneThatIsSilentToOneAfterAnother) {
  EXPECT_EQ(beats({{kC, {kA}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kD, {kA}}}, 7.2), Gone{kA});
}

// Claim: nor whether it lets one life say it, and then says it of the next.
TEST_F(DisputesTest, OneThatIsSilentAndAccusesTheSameThen) {
  EXPECT_EQ(beats({{kC, {kA}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kA});
}

// Claim: nor whether the next accusation begins before the first has ripened.
TEST_F(DisputesTest, OneThatAccusesInHaste) {
  EXPECT_EQ(beats({{kA, {kC}}}, 6.8), Gone());
  EXPECT_EQ(beats({{kA, {kC, kD}}}, 0.5), Gone{kA});
}

// Claim: two that accuse the same ones together have one fenced; at the second they go
// themselves.
TEST_F(DisputesTest, TwoAccusers) {
  EXPECT_EQ(beats({{kA, {kC}}, {kB, {kC}}}, 7.2), Gone{kC});
  EXPECT_EQ(beats({{kA, {kD}}, {kB, {kD}}}, 7.2), (Gone{kB, kA}));
}

// Claim: whoever accuses all others goes, and none of them is the worse for it in its next dispute.
TEST_F(DisputesTest, WhoAccusesAll) {
  EXPECT_EQ(beats({{kA, {kB, kC, kD, kE}}}, 7.2), Gone{kA});
  EXPECT_EQ(beats({{kE, {kB}}}, 7.2), Gone{kE});
}

// Claim: of a network that falls apart one side stays whole, though not all notice at once.
TEST_F(DisputesTest, NetworkFallsApart) {
  const Accusations all{
      {kA, {kD, kE}}, {kB, {kD, kE}}, {kC, {kD, kE}}, {kD, {kA, kB, kC}}, {kE, {kA, kB, kC}}};
  Accusations first{all};
  for (const NodeId late : {kB, kE}) first.erase(late);
  EXPECT_EQ(beats(first, 0.5), Gone());
  EXPECT_EQ(beats(all, 6.8), (Gone{kE, kD}));
}

// Claim: what others say counts: who is out of reach for two goes, whoever is younger.
TEST_F(DisputesTest, OutOfReachForTwo) { EXPECT_EQ(beats({{kD, {kA}}, {kE, {kA}}}, 7.2), Gone{kA}); }

// Claim: a dispute with one that is not heard waits, and one that is begun anew needs its whole time again.
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

// Claim: what a member's word has cost is forgotten with its life.
TEST_F(DisputesTest, ForgottenWithTheLife) {
  EXPECT_EQ(beats({{kA, {kC}}}, 7.2), Gone{kC});
  disputes_.gone(kA);
  EXPECT_EQ(beats({{kA, {kD}}}, 7.2), Gone{kD});
}

}  // namespace
}  // namespace gossamer::cluster
