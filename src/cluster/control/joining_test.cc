// SPDX-License-Identifier: Apache-2.0
//
// Nodes that join together, as a coordinator alone sees them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

class JoiningTogether : public CoordinatorTest {};

// Claim: twenty nodes that arrive together change the view once, whatever their order, and at most kTogether
// after the first of them was ready. One that becomes ready later is another change.
TEST_F(JoiningTogether, ChangesTheViewOnce) {
  for (std::uint64_t node = 10; node < 12; ++node) serve(begin(node));
  const Epoch before = coordinator_->view().epoch();
  std::vector<net::PeerId> peers;
  for (std::uint64_t node = 20; node < 41; ++node) peers.push_back(begin(node));
  const net::PeerId late = peers.back();
  peers.pop_back();
  for (const net::PeerId peer : peers) {
    EXPECT_EQ(coordinator_->view().epoch(), before);
    serve(peer);
    now_ = now_ + from_milliseconds(40);
  }
  for (const net::PeerId peer : peers) say(peer, [](auto& said) { said.mutable_beat(); });
  now_ = now_ + from_milliseconds(200);
  coordinator_->tick(now_);
  store();
  EXPECT_EQ(coordinator_->view().epoch(), Epoch(before.value + 1));
  EXPECT_EQ(coordinator_->view().members().size(), 22U);
  rest();
  serve(late);
  EXPECT_EQ(coordinator_->view().epoch(), Epoch(before.value + 2));
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
}

// Claim: one that has fallen silent since it was ready does not serve with the others, and it serves once it
// is heard again. They could not come to rest without it.
TEST_F(JoiningTogether, WhoIsSilentServesLater) {
  for (std::uint64_t node = 10; node < 12; ++node) serve(begin(node));
  const net::PeerId silent = begin(20);
  const net::PeerId other = begin(21);
  std::vector<net::PeerId> beat{{other}};
  const auto pass = [&](int tenths) {
    for (int i = 0; i < tenths; ++i) {
      for (const net::PeerId peer : beat) say(peer, [](auto& said) { said.mutable_beat(); });
      live(0.1);
    }
  };
  const auto serves = [&](net::PeerId peer) { return coordinator_->view().members().contains(peer.node); };
  say(silent, [](auto& said) { said.mutable_ready(); });
  pass(9);
  say(other, [](auto& said) { said.mutable_ready(); });
  pass(2);
  EXPECT_TRUE(serves(other));
  EXPECT_FALSE(serves(silent));
  EXPECT_TRUE(coordinator_->lives(silent));
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  beat.push_back(silent);
  pass(2);
  EXPECT_TRUE(serves(silent));
}

// Claim: what a node puts into Begin beside the fields that are known is kept nowhere. It would be in the
// store and in each view for as long as the node is a member.
TEST_F(JoiningTogether, KeepsNothingUnknown) {
  const std::string made_up = std::string("\xfa\x3e\x28", 3) + std::string(40, 'u');  // field 1007, 40 bytes
  membership::BeginAsk ask;
  ask.set_run("run");
  *ask.mutable_listening() = listening_of({.node = NodeId(10), .control = {"h", 1}, .bulk = {"h", 2}});
  const auto grows = [&](auto& message) {
    const std::string bytes = message.SerializeAsString() + made_up;
    ASSERT_TRUE(message.ParseFromString(bytes));
    ASSERT_EQ(message.SerializeAsString().size(), bytes.size());
  };
  grows(*ask.mutable_listening()->mutable_control());
  grows(*ask.mutable_listening()->mutable_bulk());
  grows(*ask.mutable_listening());
  grows(ask);
  coordinator_->begin(
      NodeId(10), ask.SerializeAsString(), [](const auto& answer) { EXPECT_TRUE(answer.ok()); }, now_);
  store();
  EXPECT_TRUE(coordinator_->knows(NodeId(10)));
  EXPECT_GE(kept_.size(), 2U);
  for (const auto& [key, value] : kept_) EXPECT_EQ(value.find("uuuu"), std::string::npos) << key;
}

// Claim: a joining life that has said Here, and makes no sign of life, is let go. One that beats stays, also
// without ever being ready.
TEST_F(JoiningTogether, WhoMakesNoSignOfLifeIsLetGo) {
  for (std::uint64_t node = 10; node < 12; ++node) serve(begin(node));
  const net::PeerId beats = begin(20);
  const net::PeerId silent = begin(21);
  for (int i = 0; i < 600; ++i) {
    live(0.5);
    say(beats, [](auto& said) { said.mutable_beat(); });
    EXPECT_TRUE(coordinator_->lives(silent) || i > 2);
    EXPECT_FALSE(coordinator_->lives(silent) && i > 10) << i;
  }
  EXPECT_TRUE(coordinator_->lives(beats));
}

// Claim: a life that beats and is never ready keeps nobody from anything. A member that is ready serves
// within a second, and a member that dies is taken out. Members that all drain are released within ten
// seconds. So the end comes soon after they have left.
TEST_F(JoiningTogether, WhoIsNeverReadyCostsNothing) {
  std::vector<net::PeerId> never;
  const auto pass = [&](double seconds) {
    for (double past = 0; past < seconds; past += 0.5) {
      live(0.5);
      for (const net::PeerId peer : never) say(peer, [](auto& said) { said.mutable_beat(); });
    }
  };
  const auto released = [&] {
    return std::ranges::count_if(said_.all, [](const auto& one) { return one.second.has_released(); });
  };
  const net::PeerId first = begin(10);
  serve(first);
  serve(begin(11));
  for (std::uint64_t node = 30; node < 36; ++node) never.push_back(begin(node));
  pass(300);
  const net::PeerId third = begin(12);
  say(third, [](auto& said) { said.mutable_ready(); });
  pass(0.5);
  say(third, [](auto& said) { said.mutable_beat(); });
  pass(1);
  EXPECT_EQ(coordinator_->view().members().size(), 3U);
  say(third, [](auto& said) { said.mutable_leave(); });
  pass(1);
  EXPECT_EQ(coordinator_->view().members().size(), 2U);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  for (const auto& [node, record] : std::map(coordinator_->view().members()))
    say(peer_of(record), [](auto& said) { said.mutable_drain(); });
  pass(8);
  EXPECT_EQ(released(), 0) << "one that joins might be ready";
  pass(4);
  EXPECT_EQ(released(), 2);
  coordinator_->stop("enough", now_);
  store();
  for (const auto& [node, record] : std::map(coordinator_->view().members()))
    say(peer_of(record), [](auto& said) { said.mutable_leave(); });
  pass(9);
  EXPECT_FALSE(coordinator_->stopped());
  EXPECT_TRUE(coordinator_->lives(never.front()));
  pass(8);
  EXPECT_TRUE(coordinator_->stopped());
}

// Claim: all are told at once of a joining life that is fenced, for whatever reason, and that the view does
// not change. Nobody is told of a life that never came. A life of the view is told by the view alone.
TEST_F(JoiningTogether, TellsOfJoiningLivesThatAreGone) {
  const auto told = [&] {
    std::map<net::PeerId, std::set<std::uint64_t>> all;
    for (const auto& [to, message] : std::exchange(said_.all, {})) {
      if (message.has_gone()) all[to].insert(message.gone().incarnation());
    }
    return all;
  };
  const net::PeerId first = begin(10);
  serve(first);
  const net::PeerId second = begin(11);
  serve(second);
  const net::PeerId joins = begin(12);
  const Epoch before = coordinator_->view().epoch();
  const net::PeerId again = begin(12);
  EXPECT_EQ(told(), (std::map<net::PeerId, std::set<std::uint64_t>>{{first, {joins.incarnation.value}},
                                                                    {second, {joins.incarnation.value}}}));
  coordinator_->blame(again, Error{.what = "it broke a rule"}, now_);
  store();
  EXPECT_EQ(told().size(), 2U);
  EXPECT_EQ(coordinator_->view().epoch(), before);
  membership::BeginAsk ask;
  ask.set_run("run");
  for (int i = 0; i < 2; ++i)
    coordinator_->begin(NodeId(13), ask.SerializeAsString(), [](const auto&) {}, now_);
  store();
  EXPECT_TRUE(told().empty()) << "it never came";
  coordinator_->blame(second, Error{.what = "it broke a rule"}, now_);
  store();
  EXPECT_TRUE(told().empty());
  EXPECT_GT(coordinator_->view().epoch(), before);
}

// Claim: a joining life that began with the coordinator before may have been introduced by it. If it does not
// come, all are told that it is gone, joining ones included.
TEST_F(JoiningTogether, TellsOfLivesFromBeforeATakeover) {
  const net::PeerId first = begin(10);
  serve(first);
  const net::PeerId second = begin(11);
  serve(second);
  const net::PeerId joins = begin(12);
  const net::PeerId lost = begin(13);
  lead_again();
  said_.all.clear();
  const auto pass = [&](double seconds) {
    for (double past = 0; past < seconds; past += 0.5) {
      live(0.5);
      say(joins, [](auto& said) { said.mutable_beat(); });
    }
  };
  for (const net::PeerId peer : {first, second, joins}) say(peer, [](auto& said) { said.mutable_here(); });
  pass(9);
  EXPECT_TRUE(coordinator_->lives(lost));
  pass(2);
  EXPECT_FALSE(coordinator_->lives(lost));
  std::set<net::PeerId> told;
  for (const auto& [to, message] : said_.all) {
    if (!message.has_gone()) continue;
    EXPECT_EQ(message.gone().incarnation(), lost.incarnation.value);
    told.insert(to);
  }
  EXPECT_EQ(told, (std::set{first, second, joins}));
}

// Claim: a member that says Here again and again is fenced, as others would hear of it each time. One that
// says it once a second for an hour is not.
TEST_F(JoiningTogether, HereAgainAndAgain) {
  serve(begin(10));
  const auto says_here = [this](net::PeerId peer) {
    say(peer, [](auto& said) { said.mutable_here(); });
    store();
    return coordinator_->lives(peer);
  };
  const net::PeerId honest = begin(11);
  for (int s = 0; s < 3600; ++s) {
    live(1);
    ASSERT_TRUE(says_here(honest)) << s;
  }
  const net::PeerId joins = begin(12);
  int said = 0;
  while (says_here(joins)) ASSERT_LT(++said, 1000);
  EXPECT_GT(said, 100);
}

}  // namespace
}  // namespace gossamer::cluster
