// SPDX-License-Identifier: Apache-2.0
//
// A coordinator alone, before members whose messages the test chooses. The simulation tests how it does in a
// fleet (src/simulation).
#include "cluster/control/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

// Claim: all members of the view are told of a joining member, once. A joining one is told only if it is to
// open the link, because it listens nowhere. It is told of the others when it serves itself.
TEST_F(CoordinatorTest, IntroducesJoiningMembers) {
  using Told = std::vector<std::pair<net::PeerId, std::uint64_t>>;
  const auto told = [&] {
    Told all;
    for (const auto& [to, message] : std::exchange(said_.all, {})) {
      if (message.has_joining()) all.emplace_back(to, message.joining().member().node());
    }
    return all;
  };
  const net::PeerId listens = begin(10, 1, "10.0.0.1");
  serve(listens);
  const net::PeerId hidden = begin(11);
  serve(hidden);
  EXPECT_EQ(told(), (Told{{listens, 11}}));
  const net::PeerId joins = begin(12, 1, "10.0.0.2");
  EXPECT_EQ(told(), (Told{{listens, 12}, {hidden, 12}}));
  begin(13, 1, "10.0.0.3");
  EXPECT_EQ(told(), (Told{{listens, 13}, {hidden, 13}}));
  const net::PeerId away = begin(14);
  EXPECT_EQ(told(), (Told{{listens, 14}, {hidden, 14}, {away, 12}, {away, 13}}));
  serve(joins);
  now_ = now_ + Arrivals::kTogether;
  coordinator_->tick(now_);
  store();
  EXPECT_EQ(told(), (Told{{joins, 13}, {joins, 14}}));
  EXPECT_FALSE(coordinator_->lives({away.node, Incarnation(away.incarnation.value + 1)}));
  EXPECT_TRUE(coordinator_->lives(away));
}

// Claim: leases of fenced holders leave the store with the first commit of a new lead; others stay.
TEST_F(CoordinatorTest, LeasesOfTheFencedLeaveTheStore) {
  const Lease gone{.keys = {LeaseSpace(1), 0, 2}, .holder = Incarnation(50), .duration = from_seconds(3)};
  const Lease kept{.keys = {LeaseSpace(1), 2, 3}, .holder = Incarnation(51), .duration = from_seconds(3)};
  Records records;
  ASSERT_TRUE(begin_lead(records, {.run = "run", .batch = 1}).ok());
  records.fenced.fence(gone.holder);
  records.leases = {gone, kept};
  Coordinator::Options options;
  options.run = "run";
  options.generation = Generation(2);
  coordinator_.emplace(std::move(options), std::move(records), workload_, links_, now_);
  const auto first = coordinator_->next_commit();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(std::ranges::count(*first, remove_lease(gone).key, &host::Change::key), 1);
  EXPECT_EQ(std::ranges::count(*first, remove_lease(kept).key, &host::Change::key), 0);
}

// Claim: lives that never came keep no node from serving. A node asks for one after another while the store
// is away, because no answer comes.
TEST_F(CoordinatorTest, LivesThatNeverCameDoNotCount) {
  membership::BeginAsk ask;
  ask.set_run("run");
  for (int life = 0; life < 4; ++life)
    coordinator_->begin(NodeId(10), ask.SerializeAsString(), [](const Result<std::string>&) {}, now_);
  serve(begin(10));
  EXPECT_TRUE(coordinator_->view().members().contains(NodeId(10)));
}

class AnySpeed : public CoordinatorTest, public ::testing::WithParamInterface<double> {};

// Claim: a run gets a placement with all its members in the view, whatever speed a member claims.
TEST_P(AnySpeed, IsPlaced) {
  const net::PeerId odd = begin(10, 8);
  say(odd, [](auto& said) { said.mutable_beat()->set_speed(GetParam()); });
  serve(odd);
  // Nothing is measured for this member, so its speed is guessed from the cores and speeds of others.
  const net::PeerId good = begin(11, 1000);
  serve(good);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  EXPECT_NE(coordinator_->view().find(odd), nullptr);
  EXPECT_NE(coordinator_->view().find(good), nullptr);
  EXPECT_EQ(coordinator_->holdings().size(), 1u);
}
INSTANTIATE_TEST_SUITE_P(Speeds, AnySpeed,
                         ::testing::Values(std::numeric_limits<double>::denorm_min(), 1e-300, 1e300,
                                           std::numeric_limits<double>::max() / 2,
                                           std::numeric_limits<double>::infinity(),
                                           std::numeric_limits<double>::quiet_NaN(), -1.0, 1.0));

// Claim: a member gives all away within a minute when its own work takes longer than a step without it. It is
// tried after 10 minutes. As it is still weak, the next trial is not after 10 more.
TEST_F(CoordinatorTest, AWeakMemberIsRelievedAndTriedAgain) {
  workload_.count = 40;
  const net::PeerId strong = begin(10);
  const net::PeerId weak = begin(11);
  serve(strong);
  serve(weak);
  measured(strong, 100, 10);
  measured(weak, 100, 10);
  live(60);
  EXPECT_EQ(held_by(weak), 20);
  measured(weak, 10, 10);
  live(60);
  EXPECT_EQ(held_by(weak), 0);
  EXPECT_EQ(held_by(strong), 40);
  live(480);
  EXPECT_EQ(held_by(weak), 0);
  live(180);
  EXPECT_GE(held_by(weak), 18);
  measured(weak, 10, 10);
  live(660);
  EXPECT_EQ(held_by(weak), 0);
  live(700);
  EXPECT_GE(held_by(weak), 18);
  const auto told = coordinator_->take_events();
  const auto why = std::ranges::find(told, "rebalances", &RunEvent::kind);
  ASSERT_NE(why, told.end());
  EXPECT_EQ(why->text,
            "node 10 20 -> 40 things (100 a second, own work 10), node 11 20 -> 0 things "
            "(10 a second, own work 10)");
}

// Claim: the first look for a better placement comes 30 s after an installed one, as measurements of that one
// take a while.
TEST_F(CoordinatorTest, MeasuresBeforeItPlacesAnew) {
  workload_.count = 40;
  const net::PeerId strong = begin(10);
  const net::PeerId weak = begin(11);
  serve(strong);
  serve(weak);
  measured(strong, 100, 10);
  measured(weak, 10, 10);
  live(29);
  EXPECT_EQ(held_by(weak), 20);
  live(2);
  EXPECT_EQ(held_by(weak), 0);
}

// Claim: figures that a member tells of its steps stand until its next beat, and decide nothing.
TEST_F(CoordinatorTest, FiguresOfSteps) {
  const net::PeerId peer = begin(10);
  say(peer, [](auto& said) {
    said.mutable_beat()->mutable_steps()->set_loss(std::numeric_limits<double>::quiet_NaN());
    said.mutable_beat()->mutable_steps()->set_step_bytes(-1e300);
  });
  ASSERT_EQ(coordinator_->members().size(), 1u);
  ASSERT_TRUE(coordinator_->members()[0].steps.has_value());
  EXPECT_EQ(coordinator_->members()[0].steps->step_bytes(), -1e300);
  say(peer, [](auto& said) { said.mutable_beat(); });
  EXPECT_FALSE(coordinator_->members()[0].steps.has_value());
}

// Claim: a member that breaks a rule towards the coordinator is fenced, and the event says which.
TEST_F(CoordinatorOfSix, AtFault) {
  coordinator_->on(net::PeerAtFault{.peer = members_[2], .error = Error{.what = "it broke rule 7"}}, now_);
  EXPECT_EQ(coordinator_->view().find(members_[2]), nullptr);
  const auto told = coordinator_->take_events();
  const auto lost = std::ranges::find(told, "lost", &RunEvent::kind);
  ASSERT_NE(lost, told.end());
  EXPECT_EQ(lost->peer, members_[2]);
  EXPECT_NE(lost->text.find("rule 7"), std::string::npos);
  EXPECT_EQ(coordinator_->view().members().size(), 5U);
}

// Claim: a member goes once more than half of the others say that it broke a rule. Each of them is told of
// once, and an accusation of another life of its node counts for nothing.
TEST_F(CoordinatorOfSix, GuiltyByMostOthers) {
  const auto accuses = [&](net::PeerId by, net::PeerId of) {
    say(by, [&](auto& said) {
      membership::Broke& broke = *said.mutable_beat()->add_broke();
      broke.set_node(of.node.value);
      broke.set_incarnation(of.incarnation.value);
      broke.set_rule("rule 7\n");
    });
  };
  const net::PeerId former{members_[5].node, Incarnation(members_[5].incarnation.value + 100)};
  (void)coordinator_->take_events();
  for (int i = 0; i < 3; ++i) {
    accuses(members_[0], members_[5]);
    accuses(members_[1], members_[5]);
    accuses(members_[2], former);
    accuses(members_[5], members_[5]);
  }
  EXPECT_NE(coordinator_->view().find(members_[5]), nullptr);
  accuses(members_[3], members_[5]);
  EXPECT_EQ(coordinator_->view().find(members_[5]), nullptr);
  const auto told = coordinator_->take_events();
  EXPECT_EQ(std::ranges::count(told, "accused", &RunEvent::kind), 3);
  const auto lost = std::ranges::find(told, "lost", &RunEvent::kind);
  ASSERT_NE(lost, told.end());
  EXPECT_EQ(lost->text, "it broke a rule, as others say: rule 7?");
}

// Claim: a node that begins life after life is held back, and asks in vain. That is no refusal, which would
// end it. It may begin again later, and its life goes on meanwhile.
TEST_F(CoordinatorOfSix, LifeAfterLife) {
  for (int i = 0; i < 6; ++i) (void)begin(20);
  const std::size_t members = coordinator_->members().size();
  membership::BeginAsk ask;
  ask.set_run("run");
  std::optional<ErrorKind> error;
  const auto ask_begin = [&] {
    coordinator_->begin(
        NodeId(20), ask.SerializeAsString(),
        [&](const Result<std::string>& answer) {
          error = answer.ok() ? std::nullopt : std::optional(answer.error().kind);
        },
        now_);
    store();
  };
  ask_begin();
  EXPECT_EQ(error, ErrorKind::kFailed);
  EXPECT_EQ(coordinator_->members().size(), members);
  now_ = now_ + from_seconds(10);
  ask_begin();
  EXPECT_EQ(error, std::nullopt);
}

// Claim: a node whose lives end soon serves later, once its last life lasts. Meanwhile it changes no view.
TEST_F(CoordinatorOfSix, ServesOnceItsLifeLasts) {
  const auto live_ready = [&] {
    const net::PeerId peer = begin(20);
    say(peer, [](auto& said) { said.mutable_ready(); });
    rest();
    return peer;
  };
  (void)live_ready();
  (void)live_ready();
  (void)live_ready();
  const Epoch before = coordinator_->view().epoch();
  const net::PeerId last = live_ready();
  EXPECT_EQ(coordinator_->view().epoch(), before);
  EXPECT_EQ(coordinator_->view().find(last), nullptr);
  EXPECT_TRUE(coordinator_->next_wakeup().has_value());
  now_ = now_ + from_seconds(1);
  coordinator_->tick(now_);
  store();
  EXPECT_NE(coordinator_->view().find(last), nullptr);
}

// Claim: members that have left are out of reach for others that are not done while a run ends. That is no
// news, and harms nobody.
TEST_F(CoordinatorTest, WhoHasLeftIsOutOfReach) {
  const net::PeerId quick = begin(10);
  const net::PeerId slow = begin(11);
  serve(quick);
  serve(slow);
  coordinator_->stop("enough", now_);
  say(quick, [](auto& said) { said.mutable_leave(); });
  for (int i = 0; i < 100; ++i) {
    now_ = now_ + from_milliseconds(100);
    say(slow, [&](auto& said) { said.mutable_beat()->add_unreachable(quick.node.value); });
    coordinator_->tick(now_);
  }
  EXPECT_FALSE(coordinator_->stopped());
  say(slow, [](auto& said) { said.mutable_leave(); });
  EXPECT_TRUE(coordinator_->stopped());
}

// Claim: a coordinator of another run, at an address that was this one's, refuses nobody. A refusal would end
// the node.
TEST_F(CoordinatorTest, OtherRunsAreNoRefusal) {
  membership::BeginAsk begin;
  membership::LeadAsk lead;
  begin.set_run("another");
  lead.set_run("another");
  std::vector<ErrorKind> kinds;
  const auto answer = [&](const Result<std::string>& said) { kinds.push_back(said.error().kind); };
  coordinator_->begin(NodeId(10), begin.SerializeAsString(), answer, now_);
  coordinator_->lead(lead.SerializeAsString(), answer);
  EXPECT_EQ(kinds, (std::vector{ErrorKind::kFailed, ErrorKind::kFailed}));
}

// Claim: a token is written when it is new or has changed. The waiting callback runs when the store has it.
TEST_F(CoordinatorTest, KeepsTokens) {
  store();
  bool durable = false;
  coordinator_->keep_token("id", "record");
  coordinator_->once_durable([&durable] { durable = true; });
  EXPECT_FALSE(durable);
  store();
  EXPECT_TRUE(durable);
  coordinator_->keep_token("id", "record");
  EXPECT_FALSE(coordinator_->waits_for_store());
  coordinator_->keep_token("id", "revoked");
  EXPECT_TRUE(coordinator_->waits_for_store());
  EXPECT_EQ(coordinator_->tokens().at("id"), "revoked");
  coordinator_->forget_token("id");
  EXPECT_TRUE(coordinator_->tokens().empty());
  store();
  coordinator_->forget_token("id");
  EXPECT_FALSE(coordinator_->waits_for_store());
}

// Claim: a member whose report contradicts those of the others is fenced before anything is decided. The
// others go on with what they have reported.
TEST_F(CoordinatorTest, WhoContradictsTheOthersIsFenced) {
  const net::PeerId one = begin(10);
  const net::PeerId two = begin(11);
  serve(one);
  serve(two);
  const Epoch before = coordinator_->installed();
  const net::PeerId liar = begin(12);
  say(liar, [](auto& said) { said.mutable_ready(); });
  const auto report = [&](net::PeerId from, const char* text) {
    say(from, [&](auto& said) {
      said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value);
      said.mutable_frozen()->set_report(text);
    });
  };
  report(liar, "odd");
  report(one, "");
  EXPECT_EQ(coordinator_->members().size(), 3U) << "not all have reported";
  EXPECT_EQ(coordinator_->installed(), before);
  report(two, "");
  EXPECT_TRUE(coordinator_->fenced().contains(liar.incarnation));
  EXPECT_FALSE(coordinator_->holdings().empty());
  EXPECT_GT(coordinator_->installed(), before);
  EXPECT_EQ(coordinator_->view().members().size(), 2U);
  EXPECT_FALSE(coordinator_->failure());
}

// Claim: a member that says at rest that it knows an epoch to come, or that it has more copies than there are
// things, is fenced before the workload sees its report.
TEST_F(CoordinatorTest, WhoSaysWhatNoMemberCanSayIsFenced) {
  const net::PeerId one = begin(10);
  const net::PeerId two = begin(11);
  serve(one);
  serve(two);
  const Epoch before = coordinator_->installed();
  for (const bool copies : {false, true}) {
    const net::PeerId liar = begin(12 + static_cast<std::uint64_t>(copies));
    say(liar, [](auto& said) { said.mutable_ready(); });
    say(liar, [&](auto& said) {
      membership::Frozen& frozen = *said.mutable_frozen();
      frozen.set_epoch(coordinator_->view().epoch().value);
      frozen.set_installed(copies ? before.value : before.value + 1);
      for (std::uint64_t i = 0; copies && i <= workload_.things().size(); ++i) frozen.add_copies(i);
    });
    EXPECT_TRUE(coordinator_->fenced().contains(liar.incarnation)) << copies;
    rest();
  }
  EXPECT_GT(coordinator_->installed(), before);
  EXPECT_EQ(coordinator_->view().members().size(), 2U);
  EXPECT_FALSE(coordinator_->failure());
}

// Claim: a member that reports so much that the decision cannot be kept is fenced before anything is decided.
// If the reports are alike, the run ends, and says why.
TEST_F(CoordinatorTest, WhoReportsTooMuchIsFenced) {
  const net::PeerId one = begin(10);
  const net::PeerId two = begin(11);
  serve(one);
  serve(two);
  const net::PeerId liar = begin(12);
  say(liar, [](auto& said) { said.mutable_ready(); });
  const auto report = [&](net::PeerId from, std::size_t bytes) {
    say(from, [&](auto& said) {
      said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value);
      said.mutable_frozen()->set_report(std::string(bytes, 'L'));
    });
  };
  report(liar, kMaxDecisionBytes);
  report(one, 1000);
  report(two, 2000);
  EXPECT_TRUE(coordinator_->fenced().contains(liar.incarnation));
  EXPECT_FALSE(coordinator_->failure());
  EXPECT_EQ(coordinator_->decision().size(), 3000U);
  const net::PeerId third = begin(13);
  say(third, [](auto& said) { said.mutable_ready(); });
  report(third, kMaxDecisionBytes - 30);
  report(one, kMaxDecisionBytes - 10);
  report(two, kMaxDecisionBytes - 20);
  ASSERT_TRUE(coordinator_->failure().has_value());
  EXPECT_EQ(coordinator_->failure()->what, "the run has too many parts");
}

// Claim: a member that broke a rule elsewhere is fenced, with the reason. A later life of its node is not.
TEST_F(CoordinatorTest, BlamesOneLife) {
  const net::PeerId peer = begin(10);
  static_cast<void>(coordinator_->take_events());
  coordinator_->blame({peer.node, Incarnation(peer.incarnation.value - 1)}, Error{.what = "it lies"}, now_);
  EXPECT_FALSE(coordinator_->fenced().contains(peer.incarnation));
  coordinator_->blame(peer, Error{.what = "it lies"}, now_);
  EXPECT_TRUE(coordinator_->fenced().contains(peer.incarnation));
  store();
  const auto events = coordinator_->take_events();
  EXPECT_TRUE(std::ranges::any_of(events, [&](const RunEvent& event) {
    return event.kind == "lost" && event.peer == peer && event.text == "it lies";
  }));
}

// Claim: a member that asks for more than its budget is fenced at once. The others notice nothing, and their
// budgets are their own.
TEST_F(CoordinatorTest, FencesWhoAsksTooMuch) {
  const net::PeerId asks = begin(10);
  const net::PeerId other = begin(11);
  const auto ask = [&](net::PeerId peer) { say(peer, [](auto& said) { said.mutable_commit(); }); };
  for (int i = 0; i < static_cast<int>(RequestBudget::kAtOnce); ++i) ask(asks);
  EXPECT_TRUE(coordinator_->lives(asks));
  ask(asks);
  EXPECT_FALSE(coordinator_->lives(asks));
  ask(other);
  EXPECT_TRUE(coordinator_->lives(other));
}

// Claim: a member that says more than members have to say is fenced at once, whatever it says: too many
// words, or too many bytes. The others notice nothing.
TEST_F(CoordinatorTest, FencesWhoSaysTooMuch) {
  const net::PeerId other = begin(12);
  for (const std::size_t report : {std::size_t{0}, std::size_t{64} << 10}) {
    const net::PeerId says = begin(report == 0 ? 10 : 11);
    const double most =
        report == 0 ? WordBudget::kAtOnce : WordBudget::kBytesAtOnce / static_cast<double>(report);
    int said = 0;
    while (coordinator_->lives(says) && said < 2 * static_cast<int>(WordBudget::kAtOnce)) {
      say(says, [&](auto& word) { word.mutable_frozen()->set_report(std::string(report, 'x')); });
      ++said;
    }
    EXPECT_GT(said, most * 0.8);
    EXPECT_LT(said, most + 1);
  }
  EXPECT_TRUE(coordinator_->lives(other));
}

}  // namespace
}  // namespace gossamer::cluster
