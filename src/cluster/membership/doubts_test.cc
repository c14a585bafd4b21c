// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/doubts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>

namespace gossamer::cluster {
namespace {

constexpr Duration kPatience{600'000'000'000};

Instant at(double seconds) { return Instant{} + from_seconds(seconds); }

std::set<NodeId> nodes(std::initializer_list<std::uint64_t> numbers) {
  std::set<NodeId> all;
  for (const std::uint64_t number : numbers) all.insert(NodeId(number));
  return all;
}

// A fleet of nodes 2, 3, ... elsewhere, all heard but the first `silent`, which were heard last at 0.
Doubts::Fleet fleet_of(std::size_t members, std::size_t silent) {
  Doubts::Fleet fleet;
  for (std::size_t i = 0; i < members; ++i)
    fleet[NodeId(2 + i)] = {.elsewhere = true, .serves = true, .heard = i >= silent, .last_sign = {}};
  return fleet;
}

constexpr auto kCut = Doubts::Silence::kWithoutAWord;

class DoubtsTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::optional<Instant> spares(std::uint64_t node, const Doubts::Fleet& fleet,
                                              double seconds = 2) const {
    return doubts_.spares(NodeId(node), fleet, kPatience, at(seconds));
  }
  Doubts doubts_;
};

// Claim: silent members are together if they are two or more, and a third of those elsewhere or more, and not
// all. Members on the coordinator's machine do not count.
TEST_F(DoubtsTest, ATogetherIsAThirdAndTwo) {
  for (std::size_t members = 1; members <= 12; ++members) {
    for (std::size_t silent = 0; silent <= members; ++silent) {
      Doubts::Fleet fleet = fleet_of(members, silent);
      fleet[NodeId(100)] = {.elsewhere = false, .serves = true, .heard = false, .last_sign = {}};
      const bool expected = silent >= 2 && 3 * silent >= members && silent < members;
      EXPECT_EQ(Doubts::together(fleet).size(), expected ? silent : 0) << silent << " of " << members;
    }
  }
}

// Claim: lives that join do not make silent ones many, nor few, where others serve. A silent one among them
// shares the fate of those that serve.
TEST_F(DoubtsTest, LivesThatJoinDoNotCount) {
  Doubts::Fleet fleet = fleet_of(5, 3);
  fleet[NodeId(3)].serves = fleet[NodeId(4)].serves = false;
  EXPECT_TRUE(Doubts::together(fleet).empty()) << "one of three that serve";
  for (const std::uint64_t silent : {2U, 3U, 4U}) EXPECT_FALSE(spares(silent, fleet)) << silent;
  fleet[NodeId(3)].serves = true;
  EXPECT_EQ(Doubts::together(fleet), nodes({2, 3, 4})) << "two of four that serve";
  EXPECT_EQ(spares(4, fleet), Instant{} + kPatience);
  for (std::uint64_t node = 20; node < 40; ++node)
    fleet[NodeId(node)] = {
        .elsewhere = true, .serves = false, .holds = false, .heard = true, .last_sign = {}};
  EXPECT_EQ(Doubts::together(fleet), nodes({2, 3, 4})) << "many that join";
  fleet = fleet_of(4, 2);
  for (auto& [node, peer] : fleet) peer.serves = false;
  EXPECT_EQ(Doubts::together(fleet), nodes({2, 3})) << "nobody serves";
}

// Claim: one of several is fenced at once. The only one is not, nor any while nobody that serves is heard,
// until their own patience is over.
TEST_F(DoubtsTest, NobodyIsFencedWithoutASurvivor) {
  EXPECT_FALSE(spares(2, fleet_of(3, 1)));
  EXPECT_FALSE(spares(2, fleet_of(2, 1)));
  EXPECT_EQ(spares(2, fleet_of(1, 1)), Instant{} + kPatience);
  EXPECT_EQ(spares(3, fleet_of(4, 4)), Instant{} + kPatience);
  EXPECT_TRUE(spares(3, fleet_of(4, 4), 599.9));
  EXPECT_FALSE(spares(3, fleet_of(4, 4), 600));
}

// Claim: a heard member on the coordinator's own machine is no survivor for members elsewhere. A silent one
// there is dead if anybody is heard.
TEST_F(DoubtsTest, ItsOwnMachineProvesNothing) {
  Doubts::Fleet fleet = fleet_of(3, 3);
  fleet[NodeId(100)] = {.elsewhere = false, .serves = true, .heard = true, .last_sign = {}};
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  doubts_.says(NodeId(100), {}, nodes({2, 3, 4}));
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);

  fleet = fleet_of(1, 0);
  fleet[NodeId(100)] = {.elsewhere = false, .serves = true, .heard = false, .last_sign = {}};
  EXPECT_FALSE(spares(100, fleet));
  fleet[NodeId(2)].heard = false;
  EXPECT_EQ(spares(100, fleet), Instant{} + kPatience);
}

// Claim: members that fell silent together are fenced once two more of those that know say that they are
// quiet than hear them. One word alone may be a lie, unless nobody else can be asked.
TEST_F(DoubtsTest, TogetherNeedsWitnesses) {
  const Doubts::Fleet fleet = fleet_of(6, 2);
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);  // nobody has said anything
  doubts_.says(NodeId(4), nodes({2, 3}), {});
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  doubts_.says(NodeId(5), {}, nodes({2, 3}));
  doubts_.says(NodeId(6), {}, nodes({2, 3}));
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);  // two against one
  doubts_.says(NodeId(7), {}, nodes({2}));
  EXPECT_FALSE(spares(2, fleet));
  EXPECT_EQ(spares(3, fleet), Instant{} + kPatience);
  // The silent are no witnesses, nor is a word that was taken back.
  doubts_.says(NodeId(7), {}, {});
  doubts_.says(NodeId(3), {}, nodes({2}));
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);

  doubts_ = {};
  doubts_.says(NodeId(5), {}, nodes({2, 3}));
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience) << "one word of four";
  EXPECT_FALSE(spares(2, fleet_of(4, 3))) << "the only one that is heard";
}

// Claim: where nobody has a way of its own to the silent, they have all of their patience, until one of them
// is back. The others are fenced 10 s later. A return of before their silence does not count.
TEST_F(DoubtsTest, WithoutWitnessesOneMustComeBack) {
  const Doubts::Fleet fleet = fleet_of(6, 3);
  EXPECT_EQ(spares(2, fleet, 10), Instant{} + kPatience);
  EXPECT_EQ(spares(2, fleet, 599.9), Instant{} + kPatience);
  EXPECT_FALSE(spares(2, fleet, 600));
  doubts_.came_back(NodeId(4), from_seconds(3), kCut, at(300));
  EXPECT_EQ(spares(2, fleet, 302.9), at(303));  // as long as the silence was
  EXPECT_EQ(spares(2, fleet, 304), at(310));
  EXPECT_FALSE(spares(2, fleet, 310));
  Doubts::Fleet later = fleet;
  later[NodeId(2)].last_sign = at(301);
  EXPECT_EQ(spares(2, later, 310), at(901));
}

// Claim: a member that hung up and is back says nothing about the network of those that are silent without a
// word, nor the other way round.
TEST_F(DoubtsTest, SilencesOfAnotherKind) {
  Doubts::Fleet fleet = fleet_of(6, 3);
  fleet[NodeId(2)].silence = Doubts::Silence::kHungUp;
  doubts_.came_back(NodeId(4), from_seconds(20), kCut, at(20));
  EXPECT_EQ(spares(2, fleet, 31), Instant{} + kPatience);
  EXPECT_FALSE(spares(3, fleet, 31));
  doubts_.came_back(NodeId(4), from_seconds(30), Doubts::Silence::kHungUp, at(50));
  EXPECT_FALSE(spares(2, fleet, 61));
}

// Claim: once one of the spared is heard again, the others have as long as the silence was, at most 10 s,
// also a last one that is no more together with anybody.
TEST_F(DoubtsTest, OthersGetTimeToComeBack) {
  doubts_.came_back(NodeId(3), from_seconds(60), kCut, at(60));
  EXPECT_EQ(spares(2, fleet_of(3, 1), 69.9), at(70));
  EXPECT_FALSE(spares(2, fleet_of(3, 1), 70));
}

// Claim: a joining member takes over from members that serve only after two minutes. It is itself fenced at
// once where somebody is heard.
TEST_F(DoubtsTest, AJoinerTakesOverLate) {
  Doubts::Fleet fleet = fleet_of(3, 2);
  fleet[NodeId(4)].serves = false;
  doubts_.says(NodeId(4), {}, nodes({2, 3}));
  EXPECT_EQ(spares(2, fleet), at(120));
  EXPECT_FALSE(spares(2, fleet, 120));
  fleet = fleet_of(2, 1);
  fleet[NodeId(2)].serves = false;
  EXPECT_FALSE(spares(2, fleet));
}

// Claim: where more of those that are heard, joining ones too, hear the holders than do not, the holders have
// all of their patience. The coordinator alone is cut off from them.
TEST_F(DoubtsTest, AJoinerHearsThoseThatHold) {
  Doubts::Fleet fleet = fleet_of(5, 2);
  for (const std::uint64_t joins : {4U, 5U, 6U}) fleet[NodeId(joins)].serves = false;
  doubts_.says(NodeId(4), nodes({2, 3}), {});
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  EXPECT_EQ(spares(2, fleet, 120), Instant{} + kPatience);
  EXPECT_FALSE(spares(2, fleet, 600));
  doubts_.says(NodeId(5), {}, nodes({2, 3}));
  EXPECT_FALSE(spares(2, fleet, 120)) << "one against one";
  doubts_.says(NodeId(6), nodes({2, 3}), {});
  fleet[NodeId(6)].heard = false;
  EXPECT_FALSE(spares(2, fleet, 120)) << "a word of one that is silent itself";
}

// Claim: joining members cannot outvote one that serves and hears the holders: they may have come on this
// side of the cut alone.
TEST_F(DoubtsTest, JoinersDoNotOutvoteThoseThatServe) {
  Doubts::Fleet fleet = fleet_of(5, 2);
  fleet[NodeId(4)].holds = false;
  for (const std::uint64_t joins : {5U, 6U}) fleet[NodeId(joins)].serves = false;
  for (const std::uint64_t joins : {5U, 6U}) doubts_.says(NodeId(joins), {}, nodes({2, 3}));
  EXPECT_FALSE(spares(2, fleet, 120)) << "nobody that serves has said anything";
  doubts_.says(NodeId(4), nodes({2, 3}), {});
  EXPECT_EQ(spares(2, fleet, 120), Instant{} + kPatience);
  EXPECT_FALSE(spares(2, fleet, 600));
}

// Claim: a silent member that more others hear than do not is spared, however few are silent. Their word is
// not needed to fence one that nobody hears.
TEST_F(DoubtsTest, OthersHearASilentMember) {
  const Doubts::Fleet fleet = fleet_of(5, 1);
  EXPECT_FALSE(spares(2, fleet));
  doubts_.says(NodeId(3), nodes({2}), {});
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  doubts_.says(NodeId(4), {}, nodes({2}));
  EXPECT_FALSE(spares(2, fleet)) << "one against one";
  doubts_.says(NodeId(5), nodes({2}), {});
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  EXPECT_FALSE(spares(2, fleet, 600));
}

// Claim: members that hold nothing do not save what a silent member has. They take over after two minutes, or
// once two of them more say that the other is dead than say that it lives. One alone may lie.
TEST_F(DoubtsTest, AnIdleMemberTakesOverLate) {
  Doubts::Fleet fleet = fleet_of(5, 1);
  for (const std::uint64_t idle : {3U, 4U, 5U, 6U}) fleet[NodeId(idle)].holds = false;
  EXPECT_EQ(spares(2, fleet), at(120));
  EXPECT_FALSE(spares(2, fleet, 120));
  doubts_.says(NodeId(3), {}, nodes({2}));
  EXPECT_EQ(spares(2, fleet), at(120)) << "one word";
  doubts_.says(NodeId(4), {}, nodes({2}));
  EXPECT_FALSE(spares(2, fleet));
  doubts_.says(NodeId(5), nodes({2}), {});
  EXPECT_EQ(spares(2, fleet), at(120)) << "two against one";
  doubts_.says(NodeId(6), {}, nodes({2}));
  EXPECT_FALSE(spares(2, fleet));
  for (const std::uint64_t idle : {3U, 4U, 5U, 6U}) doubts_.says(NodeId(idle), {}, {});
  fleet[NodeId(2)].holds = false;
  EXPECT_FALSE(spares(2, fleet)) << "nothing can be lost";
}

// Claim: words of a member that is gone do not count, nor words about one that came back.
TEST_F(DoubtsTest, OldWordsDoNotCount) {
  const Doubts::Fleet fleet = fleet_of(6, 2);
  for (const std::uint64_t by : {5U, 6U}) doubts_.says(NodeId(by), {}, nodes({2, 3}));
  EXPECT_FALSE(spares(2, fleet));
  doubts_.gone(NodeId(5));
  EXPECT_TRUE(spares(2, fleet));
  doubts_.says(NodeId(7), {}, nodes({2, 3}));
  doubts_.came_back(NodeId(2), {}, kCut, at(2));
  EXPECT_TRUE(spares(2, fleet));
  EXPECT_FALSE(spares(3, fleet));
}

// Claim: the word of members that join does not count, however many they are.
TEST_F(DoubtsTest, WhoJoinsIsNoWitness) {
  Doubts::Fleet fleet = fleet_of(4, 1);
  for (std::uint64_t node = 20; node < 26; ++node) {
    fleet[NodeId(node)] = {
        .elsewhere = true, .serves = false, .holds = false, .heard = true, .last_sign = {}};
    doubts_.says(NodeId(node), {}, nodes({2}));
  }
  doubts_.says(NodeId(3), nodes({2}), {});
  EXPECT_TRUE(doubts_.heard_by_others(NodeId(2), fleet));
  EXPECT_EQ(spares(2, fleet), Instant{} + kPatience);
  fleet[NodeId(20)].serves = fleet[NodeId(21)].serves = true;
  EXPECT_FALSE(doubts_.heard_by_others(NodeId(2), fleet));
}

// Claim: where all that hold something are silent, the time of an earlier lead counts.
TEST_F(DoubtsTest, AbandonedOverLeads) {
  Doubts::Fleet fleet = fleet_of(2, 2);
  fleet[NodeId(100)] = {.elsewhere = true, .serves = false, .holds = false, .heard = true, .last_sign = {}};
  EXPECT_EQ(doubts_.spares(NodeId(2), fleet, kPatience, at(1), from_seconds(70)), at(70));
  EXPECT_FALSE(doubts_.spares(NodeId(2), fleet, kPatience, at(70), from_seconds(70)));
}

// Claim: most are missed if more than half are. They are since the one fell silent with which they were most,
// or had come too late.
TEST(HearingOf, CountsFromTheOneThatMakesThemMost) {
  const auto heard = Presence{.heard = true, .came = true, .since = at(9)};
  const auto silent = [](double since) { return Presence{.came = true, .since = at(since)}; };
  const auto comes = [](double until) { return Presence{.since = at(until)}; };
  const auto since = [](const std::vector<Presence>& members) {
    return hearing_of(members, at(1), at(20)).misses_most_since;
  };
  EXPECT_EQ(since({}), std::nullopt);
  EXPECT_EQ(since({heard}), std::nullopt);
  EXPECT_EQ(since({heard, silent(3)}), std::nullopt) << "half";
  EXPECT_EQ(since({silent(3), heard, silent(5)}), at(5));
  EXPECT_EQ(since({silent(7), silent(3), heard, silent(5)}), at(7));
  EXPECT_EQ(since({silent(3)}), at(3));
  EXPECT_EQ(since({heard, comes(21), comes(22)}), std::nullopt) << "they may come";
  EXPECT_EQ(since({heard, comes(11), silent(8)}), at(11));
  EXPECT_EQ(since({heard, comes(11), comes(21)}), std::nullopt);
  EXPECT_EQ(since({comes(11), comes(21)}), at(1)) << "none has come";
  EXPECT_EQ(since({silent(19), comes(21), comes(22)}), std::nullopt) << "one has come, and stutters";
  const Hearing hearing = hearing_of({heard, comes(21), silent(3)}, at(1), at(20));
  EXPECT_EQ(hearing.heard, 1U);
  EXPECT_EQ(hearing.all, 3U);
}

}  // namespace
}  // namespace gossamer::cluster
