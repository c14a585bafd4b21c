// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/durable.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cluster/control/records.h"

namespace gossamer::simulation {
namespace {

using cluster::LeaseOutcome;

constexpr net::PeerId kMember{NodeId(2), Incarnation(7)};
constexpr Duration kTime{3'000'000'000};

membership::MemberRecord record(membership::State state) {
  membership::MemberRecord record;
  record.set_node(kMember.node.value);
  record.set_incarnation(kMember.incarnation.value);
  record.set_state(state);
  return record;
}

membership::ToCoordinator lease_ask(std::uint64_t number) {
  membership::ToCoordinator ask;
  ask.mutable_lease()->set_number(number);
  ask.mutable_lease()->mutable_keys()->set_space(1);
  ask.mutable_lease()->mutable_keys()->set_begin(4);
  ask.mutable_lease()->mutable_keys()->set_end(6);
  return ask;
}

membership::ToMember lease_answer(std::uint64_t number, LeaseOutcome outcome) {
  membership::ToMember answer;
  answer.mutable_lease()->set_number(number);
  answer.mutable_lease()->set_outcome(static_cast<std::uint32_t>(outcome));
  answer.mutable_lease()->set_duration_ns(kTime.ns);
  return answer;
}

// Claim: a change of view rests on its epoch, on its members' states and on its fencings, each in the store.
TEST(Durable, ChangesRestOnEpochMembersAndFencings) {
  membership::Change change;
  change.set_epoch(3);
  *change.add_members() = record(membership::SERVING);
  change.add_fenced()->set_first(4);
  change.mutable_fenced(0)->set_last(5);
  cluster::FencedIncarnations fenced;
  ASSERT_TRUE(fenced.fence(Incarnation(4)));
  Durable store;
  EXPECT_NE(store.missing(change), std::nullopt);
  store.applied(cluster::put_epoch(Epoch(3), fenced));
  store.applied(cluster::put_member(record(membership::JOINING)));
  EXPECT_NE(store.missing(change), std::nullopt);
  store.applied(cluster::put_member(record(membership::SERVING)));
  EXPECT_NE(store.missing(change), std::nullopt);
  ASSERT_TRUE(fenced.fence(Incarnation(5)));
  store.applied(cluster::put_fenced(fenced));
  EXPECT_EQ(store.missing(change), std::nullopt);
  store.applied(cluster::remove_member(kMember.incarnation));
  EXPECT_EQ(store.missing(change), std::nullopt);  // entries removed since still count
}

// Claim: a granted lease rests on its record with these keys. A renewal also needs a proof younger than the
// request.
TEST(Durable, LeasesRestOnRecordsAndRenewalsOnProof) {
  Durable store;
  HeldToStore held(store);
  held.proven({10});
  held.heard(kMember, lease_ask(1), HeldToStore::Lead::kNewest, {20});
  const membership::ToMember granted = lease_answer(1, LeaseOutcome::kGranted);
  EXPECT_NE(held.missing(kMember, granted), std::nullopt);
  store.applied(cluster::put_lease(
      {.keys = {cluster::LeaseSpace(1), 4, 5}, .holder = kMember.incarnation, .duration = kTime}));
  EXPECT_NE(held.missing(kMember, granted), std::nullopt);
  store.applied(cluster::put_lease(
      {.keys = {cluster::LeaseSpace(1), 4, 6}, .holder = kMember.incarnation, .duration = kTime}));
  EXPECT_EQ(held.missing(kMember, granted), std::nullopt);
  const membership::ToMember renewed = lease_answer(1, LeaseOutcome::kRenewed);
  EXPECT_NE(held.missing(kMember, renewed), std::nullopt);
  held.proven({20});
  EXPECT_EQ(held.missing(kMember, renewed), std::nullopt);
}

// Claim: no lease is refused for the sake of an incarnation that was fenced when it was asked for. What was
// fenced later could not be known, and neither could what another coordinator fenced.
TEST(Durable, NoLeaseIsKeptForTheFenced) {
  constexpr Incarnation kAnother(9);
  const auto refused = [](std::uint64_t number) {
    membership::ToMember answer = lease_answer(number, LeaseOutcome::kHeld);
    answer.mutable_lease()->set_holder(kAnother.value);
    return answer;
  };
  Durable store;
  HeldToStore held(store);
  held.heard(kMember, lease_ask(1), HeldToStore::Lead::kNewest, {10});
  cluster::FencedIncarnations fenced;
  ASSERT_TRUE(fenced.fence(kAnother));
  store.applied(cluster::put_fenced(fenced));
  held.heard(kMember, lease_ask(2), HeldToStore::Lead::kNewest, {20});
  held.heard(kMember, lease_ask(3), HeldToStore::Lead::kReplaced, {20});
  EXPECT_EQ(held.withheld(kMember, refused(1)), std::nullopt);
  EXPECT_NE(held.withheld(kMember, refused(2)), std::nullopt);
  EXPECT_EQ(held.withheld(kMember, refused(3)), std::nullopt);
  EXPECT_EQ(held.withheld(kMember, lease_answer(2, LeaseOutcome::kGranted)), std::nullopt);
}

// Claim: an Install rests on the record with its decision, and on the holdings that were there when it came.
TEST(Durable, InstallsRestOnDecisionAndHoldings) {
  cluster::HoldingMap holdings{{placement::ThingId(0), NodeId(2)}};
  membership::Install install;
  install.set_epoch(3);
  install.set_decision("17");
  install.add_holdings()->set_node(2);
  membership::Installed installed;
  installed.set_epoch(3);
  installed.set_decision("17");
  Durable without;
  without.applied(cluster::put_installed(installed));
  EXPECT_NE(without.missing(install), std::nullopt);
  Durable store;
  for (const host::Change& change : cluster::put_holdings({}, holdings)) store.applied(change);
  EXPECT_NE(store.missing(install), std::nullopt);
  store.applied(cluster::put_installed(installed));
  EXPECT_EQ(store.missing(install), std::nullopt);
  install.set_decision("18");
  EXPECT_NE(store.missing(install), std::nullopt);
}

// Claim: claims rest on a record of each sample by the same incarnation, commits on the track's record.
TEST(Durable, ClaimsAndCommitsRestOnTheirRecords) {
  membership::ClaimAsk ask;
  ask.set_track(1);
  ask.set_step(0);
  membership::ClaimAnswer answer;
  membership::ClaimRecord& granted = *answer.add_granted();
  granted.set_track(1);
  granted.set_begin(2);
  granted.set_end(6);
  granted.set_by(kMember.incarnation.value);
  Durable store;
  const auto claim = [](std::uint64_t begin, std::uint64_t end, Incarnation by) {
    return cluster::put_claim({cluster::TrackId(1), StepNumber(0), {SampleId(begin), SampleId(end)}, by});
  };
  store.applied(claim(2, 4, kMember.incarnation));
  store.applied(claim(4, 6, Incarnation(8)));
  EXPECT_NE(store.missing(ask, answer), std::nullopt);
  store.applied(claim(4, 6, kMember.incarnation));
  EXPECT_EQ(store.missing(ask, answer), std::nullopt);

  membership::CommitAsk commit;
  commit.set_track(1);
  membership::CommitAnswer committed;
  committed.set_outcome(static_cast<std::uint32_t>(cluster::CommitOutcome::kCommitted));
  EXPECT_NE(store.missing(commit, committed), std::nullopt);
  store.applied(cluster::put_commit({cluster::TrackId(1), StepNumber(1)}));
  EXPECT_EQ(store.missing(commit, committed), std::nullopt);
}

}  // namespace
}  // namespace gossamer::simulation
