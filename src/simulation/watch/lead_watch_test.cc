// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/lead_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control/coordinator.h"
#include "cluster/control/coordinator_process.h"
#include "cluster/control/records.h"

namespace gossamer::simulation {
namespace {

using cluster::Coordinator;
using cluster::Watch;

using Nodes = std::vector<std::uint64_t>;

// A coordinator on machine c1 that leads since 0 s. Nodes 2 to 5 serve on machines of their own.
class LeadWatchTest : public ::testing::Test {
 protected:
  LeadWatchTest() {
    for (std::uint64_t node = 2; node <= 5; ++node) record(node, membership::SERVING);
    watch_.began({});
  }

  void record(std::uint64_t node, membership::State state, const std::string& machine = "m") {
    membership::MemberRecord record;
    record.set_node(node);
    record.set_incarnation(life(node).incarnation.value);
    record.set_state(state);
    record.set_machine(machine);
    durable_.applied(cluster::put_member(record));
  }

  [[nodiscard]] static net::PeerId life(std::uint64_t node) {
    return {NodeId(node), Incarnation(node + 100)};
  }
  [[nodiscard]] static Instant at(double seconds) { return {from_seconds(seconds).ns}; }

  // From now on these nodes hold a thing each.
  void install(const Nodes& holders) {
    cluster::HoldingMap holdings;
    for (const std::uint64_t node : holders) holdings[placement::ThingId(node)] = NodeId(node);
    for (const host::Change& change : cluster::put_holdings({}, holdings)) durable_.applied(change);
    membership::Installed installed;
    installed.set_epoch(++epoch_);
    durable_.applied(cluster::put_installed(installed));
  }

  // The nodes say Here at 0 s, and beat ten times a second until `end`.
  void beat(const Nodes& nodes, double end) {
    for (const std::uint64_t node : nodes) here(node, 0);
    for (int tick = 0; tick <= static_cast<int>(10 * end); ++tick) {
      for (const std::uint64_t node : nodes) said(node, {}, 0.1 * tick);
    }
  }
  void here(std::uint64_t node, double seconds) {
    membership::ToCoordinator said;
    said.mutable_here();
    watch_.heard(life(node), said, at(seconds));
  }
  struct Beat {
    Nodes hears = {};
    Nodes quiet = {};
    std::uint64_t work_ms = 0;
    std::uint64_t epoch = 0;
  };
  void said(std::uint64_t node, const Beat& beat, double seconds) {
    membership::ToCoordinator said;
    for (const std::uint64_t one : beat.hears) said.mutable_beat()->add_hears(one);
    for (const std::uint64_t one : beat.quiet) said.mutable_beat()->add_quiet(one);
    said.mutable_beat()->set_work_ms(beat.work_ms);
    said.mutable_beat()->set_epoch(beat.epoch);
    watch_.heard(life(node), said, at(seconds));
  }
  // Whether it may fence the node.
  [[nodiscard]] bool may_fence(std::uint64_t node, double seconds, std::string_view why = Watch::kSilent) {
    return !watch_.fenced(life(node), why, at(seconds));
  }

  std::uint64_t epoch_ = 0;
  Durable durable_;
  LeadWatch watch_{{.machine = "c1", .freeze_time = from_seconds(6)}, durable_};
};

// Claim: the last member that is heard may not be fenced for its silence, unless the silence is as long as
// the patience with it, which is shorter in a run that ends. Neither may one that has never come.
TEST_F(LeadWatchTest, SomebodyMustBeLeft) {
  beat({2, 3, 4}, 10);
  EXPECT_TRUE(may_fence(2, 12));
  EXPECT_TRUE(may_fence(3, 12));
  EXPECT_FALSE(may_fence(4, 12));
  EXPECT_FALSE(may_fence(5, 12, Watch::kNotInTime));
  beat({2, 3}, 10);
  EXPECT_FALSE(may_fence(3, 31));  // 2 has been silent for 21 s, too
  EXPECT_TRUE(may_fence(2, 610));
  beat({2, 3}, 10);
  watch_.ends(at(20));
  EXPECT_FALSE(may_fence(3, 29));
  EXPECT_TRUE(may_fence(2, 31));
}

// Claim: what speaks for a fence beside silence is not judged. Lives that never served have nothing to lose,
// and no network stands between the coordinator and members on its machine.
TEST_F(LeadWatchTest, OtherFencesAreNotJudged) {
  EXPECT_TRUE(may_fence(2, 1, "it left"));
  EXPECT_TRUE(may_fence(2, 1, Coordinator::kRestless));
  EXPECT_FALSE(may_fence(2, 1));
  record(6, membership::JOINING);
  EXPECT_TRUE(may_fence(6, 1));
  record(7, membership::SERVING, "c1");
  EXPECT_TRUE(may_fence(7, 1));
  watch_.ended(at(1));
  EXPECT_TRUE(may_fence(2, 1));
}

// Claim: members on the coordinator's machine are no survivors for the others.
TEST_F(LeadWatchTest, LocalMembersProveNothing) {
  record(7, membership::SERVING, "c1");
  beat({2, 7}, 10);
  EXPECT_FALSE(may_fence(2, 10));
}

// Claim: after a pause of the process, members that were heard before it count as survivors for a while.
TEST_F(LeadWatchTest, OwnPausesAreNoSilence) {
  beat({2, 3}, 1);
  watch_.resumed(at(18));
  EXPECT_TRUE(may_fence(2, 18));
}

// Claim: a member may not be fenced for its silence while more of those that were asked hear it than do not.
// A word counts that came after they were asked, several times, from a member that is heard itself.
TEST_F(LeadWatchTest, OthersMayHearIt) {
  struct Case {
    Nodes hear;
    Nodes quiet;
    double from;  // seconds after the silence
    int beats;
    bool may;
  };
  for (const Case& one : std::vector<Case>{{{3, 4}, {}, 1.1, 3, false},
                                           {{3, 4}, {5}, 1.1, 3, false},
                                           {{3}, {5}, 1.1, 3, true},
                                           {{}, {5}, 1.1, 3, true},
                                           {{3, 4}, {}, 0.5, 3, true},
                                           {{3, 4}, {}, 1.1, 2, true}}) {
    watch_.began({});
    beat({2, 3, 4, 5}, 1);
    for (int i = 0; i < one.beats; ++i) {
      const double when = 1 + one.from + 0.1 * i;
      for (const std::uint64_t node : one.hear) said(node, {.hears = {2}}, when);
      for (const std::uint64_t node : one.quiet) said(node, {.quiet = {2}}, when);
    }
    EXPECT_EQ(may_fence(2, 1 + one.from + 0.1 * one.beats), one.may) << one.from << " " << one.beats;
  }
  watch_.began({});
  beat({2, 3, 4, 5}, 1);
  for (int i = 0; i < 3; ++i) said(3, {.hears = {2}}, 2.1 + 0.1 * i);
  EXPECT_TRUE(may_fence(2, 2.6));
}

// Claim: a member that joins is no witness until it serves.
TEST_F(LeadWatchTest, JoiningMembersAreNoWitnesses) {
  record(6, membership::JOINING);
  for (const bool serves : {false, true}) {
    if (serves) record(6, membership::SERVING);
    watch_.began({});
    beat({2, 3, 6}, 1);
    for (int i = 0; i < 3; ++i) said(6, {.hears = {2}}, 2.1 + 0.1 * i);
    EXPECT_EQ(may_fence(2, 2.4), !serves);
  }
}

// Claim: where a member hears another and one that joins does not, the word of the second counts from when it
// serves, though it was said before. It serves once the leader has decided so, or the store says so.
TEST_F(LeadWatchTest, AWordCountsOnceItsMemberServes) {
  enum class Serves { kNot, kStored, kDecided };
  for (const Serves serves : {Serves::kNot, Serves::kDecided, Serves::kStored}) {
    record(6, membership::JOINING);
    watch_.began({});
    beat({2, 3, 6}, 1);
    for (int i = 0; i < 3; ++i) {
      said(3, {.hears = {2}}, 2.1 + 0.1 * i);
      said(6, {.quiet = {2}}, 2.1 + 0.1 * i);
    }
    if (serves == Serves::kStored) record(6, membership::SERVING);
    if (serves == Serves::kDecided) watch_.serves(life(6).incarnation);
    EXPECT_EQ(may_fence(2, 2.4), serves != Serves::kNot);
  }
}

// Claim: many whose connections broke together may be fenced once the others say that it is quiet, or another
// one is back, or comes. A single one needs nobody's word.
TEST_F(LeadWatchTest, ManyTogetherNeedAWord) {
  const auto broken = [&](const Nodes& nodes) {
    watch_.began({});
    beat({2, 3, 4, 5}, 1);
    for (const std::uint64_t node : nodes) watch_.broken(life(node));
  };
  broken({2});
  EXPECT_TRUE(may_fence(2, 1.3));
  broken({2, 3});
  EXPECT_FALSE(may_fence(2, 1.3));
  broken({2, 3});
  watch_.linked(life(3), at(1.2));
  EXPECT_TRUE(may_fence(2, 1.3));
  broken({2, 3});
  said(4, {.quiet = {2, 3}}, 1.2);
  EXPECT_TRUE(may_fence(2, 1.3));
  EXPECT_TRUE(may_fence(3, 1.3));
  broken({2, 3});
  for (double then = 2; then <= 300; ++then) said(4, {}, then);
  EXPECT_FALSE(may_fence(2, 300));
  broken({2, 3});
  for (double then = 2; then <= 300; ++then) said(4, {}, then);
  watch_.linked(life(5), at(290));
  EXPECT_TRUE(may_fence(2, 300)) << "5 was silent, too, and is back for 10 s";
  broken({2, 3});
  for (double then = 2; then <= 300; ++then) said(4, {}, then);
  watch_.linked(life(5), at(290.1));
  EXPECT_FALSE(may_fence(2, 300));
  broken({2, 3});
  record(6, membership::SERVING);
  here(6, 1.1);
  EXPECT_FALSE(may_fence(2, 11));
  broken({2, 3});
  here(6, 1.1);
  EXPECT_TRUE(may_fence(2, 11.1));
}

// Claim: lives that join do not count among the many. They can be the only ones that are left to ask.
TEST_F(LeadWatchTest, JoiningLivesAreNotMany) {
  const auto broken = [&](const Nodes& lives, const Nodes& nodes) {
    watch_.began({});
    beat(lives, 1);
    for (const std::uint64_t node : nodes) watch_.broken(life(node));
  };
  for (const std::uint64_t node : {7U, 8U, 9U}) record(node, membership::JOINING);
  broken({2, 3, 4, 5, 7}, {2, 7});
  EXPECT_TRUE(may_fence(2, 1.3)) << "one of four that serve";
  broken({2, 3, 4, 5, 7, 8, 9}, {2, 3});
  EXPECT_FALSE(may_fence(2, 1.3)) << "two of four";
  broken({2, 3, 7}, {2, 3});
  EXPECT_FALSE(may_fence(2, 1.3)) << "only one that joins is heard";
}

// Claim: after two minutes many may be fenced without a word, if nobody that holds something is heard.
TEST_F(LeadWatchTest, ManyThatHoldEverything) {
  const auto may_fence_at = [&](double seconds) {
    watch_.began({});
    beat({2, 3, 4, 5}, 1);
    for (const std::uint64_t node : {2U, 3U}) watch_.broken(life(node));
    for (double then = 2; then <= seconds; ++then) {
      for (const std::uint64_t node : {4U, 5U}) said(node, {}, then);
    }
    return may_fence(2, seconds);
  };
  install({2, 3});
  EXPECT_FALSE(may_fence_at(120));
  EXPECT_TRUE(may_fence_at(121));
  install({2, 3, 4});
  EXPECT_FALSE(may_fence_at(300));
}

// Claim: who has told of work within the freeze time, in the epoch for which all come to rest, is not late.
TEST_F(LeadWatchTest, WorkIsASignOfLife) {
  durable_.applied(cluster::put_epoch(Epoch(3), {}));
  const auto worked = [&](std::uint64_t epoch) {
    watch_.began({});
    beat({2}, 1);
    said(2, {.work_ms = 50, .epoch = epoch}, 2);
    said(2, {.work_ms = 50, .epoch = epoch}, 3);
  };
  worked(3);
  EXPECT_FALSE(may_fence(2, 7.9, Coordinator::kRestless));
  worked(3);
  EXPECT_TRUE(may_fence(2, 8, Coordinator::kRestless));
  worked(2);
  EXPECT_TRUE(may_fence(2, 7.9, Coordinator::kRestless));
}

// Claim: a silent member is late only if it alone is silent. It is not while no other is heard, nor while
// many are silent with it, nor within 10 s of the return of one of these.
TEST_F(LeadWatchTest, TheSilentAreLateAlone) {
  const auto silent = [&](const Nodes& nodes, double until) {
    watch_.began({});
    beat({2, 3, 4, 5}, 1);
    for (const std::uint64_t node : nodes) watch_.broken(life(node));
    for (const std::uint64_t node : {2U, 3U, 4U, 5U}) {
      if (std::ranges::find(nodes, node) == nodes.end()) said(node, {}, until);
    }
  };
  silent({2}, 40);
  EXPECT_TRUE(may_fence(2, 40, Coordinator::kRestless));
  silent({2, 3}, 40);
  EXPECT_FALSE(may_fence(2, 40, Coordinator::kRestless));
  silent({2, 3, 4, 5}, 40);
  EXPECT_FALSE(may_fence(2, 40, Coordinator::kRestless));
  silent({2, 3}, 40);
  watch_.linked(life(3), at(40));
  EXPECT_FALSE(may_fence(2, 49.9, Coordinator::kRestless));
  silent({2, 3}, 50);
  watch_.linked(life(3), at(40));
  EXPECT_TRUE(may_fence(2, 50, Coordinator::kRestless));
}

// Claim: a leader that hears nobody may lead on for 10 s, and twice as long in each further lead, until it
// hears all. A pause of its own does not count.
TEST_F(LeadWatchTest, LeadersThatHearNobodyGiveWay) {
  beat({2, 3, 4, 5}, 5);
  EXPECT_EQ(watch_.stays(at(15), false), std::nullopt);
  EXPECT_NE(watch_.stays(at(18.5), false), std::nullopt);
  watch_.resumed(at(18));
  EXPECT_EQ(watch_.stays(at(18.5), false), std::nullopt);
  watch_.ended(at(19));
  EXPECT_EQ(watch_.stays(at(60), false), std::nullopt);  // it does not lead
  watch_.began(at(60));
  EXPECT_EQ(watch_.stays(at(80), false), std::nullopt);
  EXPECT_NE(watch_.stays(at(84), false), std::nullopt);
  for (const std::uint64_t node : {2U, 3U, 4U, 5U}) here(node, 84);
  EXPECT_EQ(watch_.stays(at(84), false), std::nullopt);
  EXPECT_NE(watch_.stays(at(98), false), std::nullopt);
}

// Claim: nor may one that hears fewer than half of those that serve, however many join. Half are enough.
TEST_F(LeadWatchTest, LeadersThatMissMostGiveWay) {
  record(6, membership::JOINING);
  beat({2, 3, 4, 5, 6}, 5);
  for (int s = 5; s <= 30; ++s) {
    for (const std::uint64_t node : {2U, 3U, 6U}) said(node, {}, s);
    EXPECT_EQ(watch_.stays(at(s), false), std::nullopt) << s;
  }
  for (int s = 31; s <= 43; ++s) {
    for (const std::uint64_t node : {2U, 6U}) said(node, {}, s);
    EXPECT_EQ(watch_.stays(at(s), false), std::nullopt) << s;
  }
  said(2, {}, 44);
  EXPECT_EQ(watch_.stays(at(44), true), std::nullopt) << "the one that is heard comes to rest";
  EXPECT_NE(watch_.stays(at(44), false), std::nullopt);
  said(2, {}, 49);
  EXPECT_EQ(watch_.stays(at(49), true), std::nullopt) << "freeze time longer";
  said(2, {}, 50);
  EXPECT_NE(watch_.stays(at(50), true), std::nullopt);
}

// Claim: those that never came in this lead are missed, too, once they had their time to come.
TEST_F(LeadWatchTest, LeadersMissThoseThatNeverCame) {
  for (int s = 0; s <= 60; ++s) {
    said(2, {}, s);
    if (s == 0) here(2, 0);
    EXPECT_EQ(watch_.stays(at(s), false).has_value(), s > 23) << s;
  }
}

}  // namespace
}  // namespace gossamer::simulation
