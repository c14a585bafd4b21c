// SPDX-License-Identifier: Apache-2.0
//
// A run that is told to end while members are silent.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/control/coordinator.h"
#include "cluster/control/records.h"
#include "cluster/control/test_coordinator.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {
namespace {

// Claim: a coordinator that fenced a member while the run ends stays for 5 s, to tell it if it begins anew.
TEST_F(CoordinatorTest, SaysThatTheRunEnds) {
  const net::PeerId member = begin(10);
  serve(member);
  coordinator_->stop("enough", now_);
  now_ = now_ + Coordinator::kStopTime;
  coordinator_->tick(now_);
  store();
  EXPECT_FALSE(coordinator_->lives(member));
  now_ = now_ + from_milliseconds(4900);
  coordinator_->tick(now_);
  EXPECT_FALSE(coordinator_->stopped());
  membership::BeginAsk ask;
  ask.set_run("run");
  membership::BeginAnswer answer;
  coordinator_->begin(
      member.node, ask.SerializeAsString(),
      [&](const Result<std::string>& bytes) { ASSERT_TRUE(bytes.ok() && answer.ParseFromString(*bytes)); },
      now_);
  store();
  EXPECT_EQ(answer.stop().reason(), "enough");
  EXPECT_FALSE(answer.stop().failed());
  now_ = now_ + from_milliseconds(100);
  coordinator_->tick(now_);
  EXPECT_TRUE(coordinator_->stopped());
}

// Claim: a run that is told to end while no member is heard waits for them as long as without the word, and
// says so. It ends as soon as all are heard. Members that were told are spared for 20 s.
TEST_F(CoordinatorTest, AnEndWaitsForTheSilent) {
  const net::PeerId first = begin(10);
  const net::PeerId second = begin(11);
  serve(first);
  serve(second);
  live(1);
  silence(5);
  coordinator_->stop("enough", now_);
  silence(590);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  EXPECT_EQ(coordinator_->view().members().size(), 2u);
  EXPECT_NE(coordinator_->shortage(now_).find("node 10, 11 is heard"), std::string::npos);
  for (const net::PeerId peer : {first, second}) say(peer, [](auto& said) { said.mutable_beat(); });
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kStopping);
  silence(19);
  EXPECT_EQ(coordinator_->members().size(), 2u);
  silence(2);
  EXPECT_TRUE(coordinator_->members().empty());
}

// Three members that were told of the end. One of them has died, and the others come to rest.
class DeathAtTheEnd : public CoordinatorTest {
 protected:
  DeathAtTheEnd() {
    for (std::uint64_t node = 10; node < 13; ++node) members_.push_back(begin(node));
    for (const net::PeerId peer : members_) serve(peer);
    live(1);
    coordinator_->stop("enough", now_);
    store();
  }
  void die() {
    coordinator_->blame(members_.back(), Error{.what = "it broke a rule"}, now_);
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kFreezing);
  }

  std::vector<net::PeerId> members_;
};

// Claim: members that were told of the end are spared for two minutes while the view changes after a
// death at the end, and by another coordinator.
TEST_F(DeathAtTheEnd, ThoseThatWereToldAreSparedBriefly) {
  for (const bool taken_over : {false, true}) {
    SCOPED_TRACE(taken_over);
    if (!taken_over) die();
    store();
    if (taken_over) lead_again();
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kFreezing);
    EXPECT_TRUE(coordinator_->ending());
    for (const net::PeerId peer : {members_[0], members_[1]})
      say(peer, [](auto& said) { said.mutable_here(); });
    if (taken_over) silence(1);
    silence(taken_over ? 118 : 115);
    EXPECT_EQ(coordinator_->members().size(), 2U);
  }
  silence(2);
  EXPECT_TRUE(coordinator_->members().empty());
}

// Claim: a node that begins a life after members were told of the end hears that the run ends, also while the
// view changes after a death. It could else die at the end again and again.
TEST_F(DeathAtTheEnd, NoLifeBegins) {
  die();
  store();
  membership::BeginAsk ask;
  ask.set_run("run");
  membership::BeginAnswer answer;
  coordinator_->begin(
      NodeId(20), ask.SerializeAsString(),
      [&](const Result<std::string>& bytes) { ASSERT_TRUE(bytes.ok() && answer.ParseFromString(*bytes)); },
      now_);
  store();
  EXPECT_EQ(answer.stop().reason(), "enough");
  EXPECT_EQ(answer.incarnation(), 0U);
  EXPECT_EQ(coordinator_->members().size(), 2U);
}

// Claim: a coordinator that ends within the writes of a death at the end, whichever came last, leaves the
// next one a run whose members take over what the dead one held, and are told again.
TEST_F(DeathAtTheEnd, GoesOnHalfWay) {
  die();
  const auto changes = coordinator_->next_commit();
  ASSERT_TRUE(changes.has_value());
  ASSERT_GT(changes->size(), 3U);
  const auto before = kept_;
  for (std::size_t written = 1; written <= changes->size(); ++written) {
    SCOPED_TRACE(written);
    kept_ = before;
    keep({changes->begin(), changes->begin() + static_cast<std::ptrdiff_t>(written)}, kept_);
    lead_again();
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kFreezing);
    for (const net::PeerId peer : {members_[0], members_[1]})
      say(peer, [](auto& said) { said.mutable_here(); });
    if (coordinator_->lives(members_.back())) {
      coordinator_->blame(members_.back(), Error{.what = "it is dead"}, now_);
      store();
    }
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kFreezing);
    rest();
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kStopping);
    EXPECT_EQ(coordinator_->installed(), coordinator_->view().epoch());
    EXPECT_FALSE(coordinator_->view().members().contains(members_.back().node));
    for (const auto& [thing, node] : coordinator_->holdings()) EXPECT_NE(node, members_.back().node);
  }
}

// Claim: if no member comes back in ten minutes, the run ends.
TEST_F(CoordinatorTest, AnEndDoesNotWaitForTheDead) {
  serve(begin(10));
  serve(begin(11));
  live(1);
  silence(3);
  coordinator_->stop("enough", now_);
  silence(596);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  silence(2);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kStopping);
  silence(5);
  EXPECT_TRUE(coordinator_->stopped());
}

}  // namespace
}  // namespace gossamer::cluster
