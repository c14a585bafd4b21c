// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "cluster/control/view.h"

namespace gossamer::cluster {
namespace {

class StoreModel {
 public:
  void carry_out(const host::Change& change) {
    if (change.value) {
      entries_[change.key] = *change.value;
    } else {
      entries_.erase(change.key);
    }
  }
  template <class Changes>
  void carry_out_all(const Changes& changes) {
    for (const host::Change& change : changes) carry_out(change);
  }
  [[nodiscard]] std::vector<host::Entry> entries() const {
    std::vector<host::Entry> all;
    for (const auto& [key, value] : entries_) all.push_back({key, value});
    return all;
  }

 private:
  std::map<std::string, std::string> entries_;
};

Records read(const StoreModel& store) {
  const auto records = read_records(store.entries());
  EXPECT_TRUE(records.ok());
  return *records;
}

// Claim: every kind of record reads back as it was written, and is gone after its removal.
TEST(Records, ComeBack) {
  StoreModel store;
  membership::MemberRecord member;
  member.set_node(4);
  member.set_incarnation(9);
  member.set_state(membership::DRAINING);
  member.set_name("machine");
  membership::Installed installed;
  installed.set_epoch(6);
  installed.set_decision("go on at 17");
  FencedIncarnations fenced;
  fenced.fence(Incarnation(2));
  fenced.fence(Incarnation(3));
  const Lease lease{{LeaseSpace(1), 5, 8}, Incarnation(9), from_seconds(3)};
  const Claim claim{TrackId(2), StepNumber(3), {SampleId(36), SampleId(40)}, Incarnation(9)};
  const Mark mark{TrackId(2), Incarnation(9), StepNumber(4)};
  membership::Stopping stopping;
  stopping.set_reason("enough");
  stopping.set_failed(true);
  membership::NodeRecord node;
  node.set_node(4);
  node.set_token("0123");
  store.carry_out_all(std::vector{
      put_epoch(Epoch(7), fenced), put_installed(installed), put_member(member), put_fenced(fenced),
      put_lease(lease), put_claim(claim), put_commit({TrackId(2), StepNumber(3)}), put_mark(mark),
      put_committed(StepNumber(3)), put_stopping(stopping), put_token("0123", "a token's record"),
      put_node(node), put_silent({{Incarnation(9), from_seconds(50)}})});
  Records records = read(store);
  EXPECT_EQ(records.nodes.at(NodeId(4)).SerializeAsString(), node.SerializeAsString());
  EXPECT_EQ(records.silent, (SilentTimes::Rows{{Incarnation(9), from_seconds(50)}}));
  EXPECT_EQ(records.epoch, Epoch(7));
  EXPECT_EQ(records.fenced_in_view, fenced);
  EXPECT_EQ(records.fenced, fenced);
  EXPECT_EQ(records.installed.decision(), "go on at 17");
  EXPECT_EQ(records.members.at(NodeId(4)).SerializeAsString(), member.SerializeAsString());
  EXPECT_EQ(records.leases, std::vector{lease});
  EXPECT_EQ(records.claims.claims, std::vector{claim});
  EXPECT_EQ(records.claims.commits, (std::vector{TrackCommit{TrackId(2), StepNumber(3)}}));
  EXPECT_EQ(records.marks.marks, std::vector{mark});
  EXPECT_EQ(records.marks.committed, StepNumber(3));
  EXPECT_EQ(records.tokens, (std::map<std::string, std::string>{{"0123", "a token's record"}}));
  EXPECT_EQ(records.stopping->SerializeAsString(), stopping.SerializeAsString());

  store.carry_out_all(std::vector{remove_member(Incarnation(9)), remove_lease(lease), remove_claim(claim),
                                  remove_mark(TrackId(2), Incarnation(9)), remove_token("0123")});
  records = read(store);
  EXPECT_TRUE(records.members.empty() && records.leases.empty());
  EXPECT_TRUE(records.claims.claims.empty() && records.marks.marks.empty() && records.tokens.empty());
}

// Claim: holdings are written in pieces, only those that differ, and read back whole.
TEST(Records, HoldingsAreWrittenByPieces) {
  StoreModel store;
  HoldingMap before;
  for (std::uint64_t thing = 0; thing < 10'000; ++thing) before[placement::ThingId(thing)] = NodeId(2);
  const auto first = put_holdings({}, before);
  EXPECT_EQ(first.size(), 3u);
  store.carry_out_all(first);
  HoldingMap after = before;
  after[placement::ThingId(5000)] = NodeId(3);
  const auto second = put_holdings(before, after);
  EXPECT_EQ(second.size(), 1u);
  store.carry_out_all(second);
  EXPECT_EQ(read(store).holdings, after);
  store.carry_out_all(put_holdings(after, {}));
  EXPECT_TRUE(read(store).holdings.empty());
}

// Claim: a silence longer than a year is damage. Silences of members that are gone are dropped when a lead
// begins, as the one before may have got only half-way.
TEST(Records, Silences) {
  StoreModel store;
  store.carry_out(put_silent({{Incarnation(9), from_seconds(366.0 * 86'400)}}));
  EXPECT_FALSE(read_records(store.entries()).ok());
  membership::MemberRecord member;
  member.set_node(4);
  member.set_incarnation(9);
  member.set_state(membership::SERVING);
  membership::Lead lead;
  lead.set_run("run");
  lead.set_batch(1);
  lead.set_next_node(5);
  lead.set_next_incarnation(10);
  store.carry_out_all(
      std::vector{put_lead(lead), put_member(member),
                  put_silent({{Incarnation(8), from_seconds(600)}, {Incarnation(9), from_seconds(30)}})});
  Records records = read(store);
  ASSERT_TRUE(begin_lead(records, {.run = "run"}).ok());
  EXPECT_EQ(records.silent, (SilentTimes::Rows{{Incarnation(9), from_seconds(30)}}));
  FencedIncarnations fenced;
  fenced.fence(Incarnation(9));
  store.carry_out(put_fenced(fenced));
  records = read(store);
  ASSERT_TRUE(begin_lead(records, {.run = "run"}).ok());
  EXPECT_TRUE(records.silent.empty()) << "its record is still there";
}

// Claim: an unreadable entry is named by its key.
TEST(Records, DamageIsNamed) {
  for (const char* const key :
       {"lead", "epoch", "installed", "fenced", "members/1", "leases/1/2", "claims/1/2/3", "commits/1",
        "marks/1/2", "committed", "stopping", "holdings/000000", "nodes/1", "silent"}) {
    const std::vector<host::Entry> entries{{key, "\xff\xff\xff"}};
    const auto records = read_records(entries);
    ASSERT_FALSE(records.ok()) << key;
    EXPECT_EQ(records.error().where, key);
    EXPECT_EQ(records.error().kind, ErrorKind::kBadData);
  }
  const std::vector<host::Entry> unknown{{"something/else", ""}};
  EXPECT_FALSE(read_records(unknown).ok());
}

// Claim: each lead takes an incarnation of its own and fences the one before. A store of another run, or with
// other ledgers, is refused before anything is written.
TEST(Records, LeadsFollowEachOther) {
  StoreModel store;
  Records records;
  const std::vector<TrackId> tracks{TrackId(0), TrackId(1)};
  const RunShape shape{.run = "r", .batch = 12, .tracks = tracks};
  auto changes = begin_lead(records, shape);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(records.lead.incarnation(), 1u);
  EXPECT_EQ(records.lead.next_node(), 2u);
  store.carry_out_all(*changes);

  records = read(store);
  changes = begin_lead(records, shape);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(records.lead.incarnation(), 2u);
  EXPECT_TRUE(records.fenced.contains(Incarnation(1)));
  store.carry_out_all(*changes);

  records = read(store);
  EXPECT_EQ(begin_lead(records, {.run = "other", .batch = 12, .tracks = tracks}).error().kind,
            ErrorKind::kRefused);
  EXPECT_EQ(begin_lead(records, {.run = "r", .batch = 13, .tracks = tracks}).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(begin_lead(records, {.run = "r", .batch = 12, .tracks = {TrackId(0)}}).error().kind,
            ErrorKind::kUsage);
}

// Claim: a lead gives no number again that a member or a node on record has, whatever the lead before has
// given.
TEST(Records, NumbersOfNodesAreGivenOnce) {
  for (const bool member : {true, false}) {
    Records records;
    records.lead.set_next_incarnation(2);
    if (member) {
      records.members[NodeId(7)].set_node(7);
    } else {
      records.nodes[NodeId(7)].set_node(7);
    }
    ASSERT_TRUE(begin_lead(records, {.run = "r", .batch = 12}).ok());
    EXPECT_EQ(records.lead.next_node(), 8u);
  }
}

// A store after some work, with two tracks and a batch of 12. Member 4 has incarnation 5, the last one given.
StoreModel good_store() {
  membership::Lead lead;
  lead.set_run("r");
  lead.set_batch(12);
  lead.set_tracks(2);
  lead.set_incarnation(3);
  lead.set_next_node(5);
  lead.set_next_incarnation(6);
  membership::MemberRecord member;
  member.set_node(4);
  member.set_incarnation(5);
  member.set_state(membership::SERVING);
  membership::Installed installed;
  installed.set_epoch(7);
  installed.add_speeds()->set_speed(1);
  FencedIncarnations fenced;
  fenced.fence(Incarnation(2));
  StoreModel store;
  store.carry_out_all(
      std::vector{put_lead(lead), put_epoch(Epoch(7), fenced), put_installed(installed), put_member(member),
                  put_fenced(fenced), put_lease({{LeaseSpace(1), 5, 8}, Incarnation(5), from_seconds(3)}),
                  put_claim({TrackId(1), StepNumber(3), {SampleId(36), SampleId(40)}, Incarnation(5)}),
                  put_commit({TrackId(1), StepNumber(3)}),
                  put_mark({TrackId(1), Incarnation(5), StepNumber(4)}), put_committed(StepNumber(3))});
  return store;
}

// How a lead begins with good_store() and one further change.
Result<void> begin_after(const host::Change& change) {
  StoreModel store = good_store();
  store.carry_out(change);
  auto records = read_records(store.entries());
  if (!records.ok()) return records.error();
  const auto begun = begin_lead(*records, {.run = "r", .batch = 12, .tracks = {TrackId(0), TrackId(1)}});
  if (!begun.ok()) return begun.error();
  return {};
}

// Claim: entries that can be read but cannot be true, alone or beside others, are named. (A coordinator that
// took them up would end with a failed check, at once or at the next change.)
TEST(Records, WhatCannotBeIsNamed) {
  ASSERT_TRUE(begin_after({"stopping", ""}).ok());
  membership::MemberRecord far;  // the number after its own is none
  far.set_node(kMostNumber - 1);
  far.set_incarnation(4);
  membership::NodeRecord let_in;
  let_in.set_node(UINT64_MAX);
  membership::MemberRecord member;
  member.set_node(4);
  member.set_incarnation(6);
  membership::Installed installed;
  installed.set_epoch(8);
  membership::Installed speeds;
  speeds.add_speeds()->set_speed(1e300);
  membership::Installed own_work = installed;
  own_work.set_epoch(7);
  own_work.add_speeds()->set_speed(1);
  own_work.mutable_speeds(0)->set_own_work(-1);
  FencedIncarnations all;
  all.fence(Incarnation(9));
  FencedIncarnations its_own;
  its_own.fence(Incarnation(5));
  const Incarnation living(5);
  membership::MemberRecord coordinator;
  coordinator.set_node(kCoordinatorNode.value);
  coordinator.set_incarnation(4);
  membership::MemberRecord twice;
  twice.set_node(4);
  twice.set_incarnation(4);
  for (const host::Change& change :
       {put_member(member), put_member(coordinator), put_member(far), put_node(let_in),
        put_installed(installed), put_installed(speeds), put_installed(own_work), put_fenced(all),
        put_epoch(Epoch(UINT64_MAX), {}), put_epoch(Epoch(7), all),
        put_lease({{LeaseSpace(1), 7, 9}, living, from_seconds(3)}),
        put_lease({{LeaseSpace(2), 7, 9}, living, {INT64_MAX}}),
        put_claim({TrackId(1), StepNumber(3), {SampleId(38), SampleId(41)}, living}),
        put_claim({TrackId(1), StepNumber(3), {SampleId(47), SampleId(49)}, living}),
        put_claim({TrackId(2), StepNumber(3), {SampleId(36), SampleId(40)}, living}),
        put_commit({TrackId(2), StepNumber(3)}), put_commit({TrackId(1), StepNumber(UINT64_MAX)}),
        put_mark({TrackId(2), living, StepNumber(4)}), put_committed(StepNumber(UINT64_MAX))}) {
    const auto begun = begin_after(change);
    ASSERT_FALSE(begun.ok()) << change.key;
    EXPECT_EQ(begun.error().kind, ErrorKind::kBadData) << change.key;
    EXPECT_EQ(begun.error().where, change.key);
  }
  EXPECT_EQ(begin_after({"lead", std::nullopt}).error().kind, ErrorKind::kBadData);
  EXPECT_EQ(begin_after(put_epoch(Epoch(7), its_own)).error().where, "members/00000000000000000005");
  EXPECT_FALSE(begin_after(put_member(twice)).ok());
  // Under another key than its own.
  EXPECT_EQ(begin_after({"leases/1/5", put_lease({{LeaseSpace(1), 5, 8}, living, from_seconds(3)}).value})
                .error()
                .where,
            "leases/1/5");
  // Leases and claims of fenced holders mean nothing, and may overlap or be out of range.
  EXPECT_TRUE(begin_after(put_lease({{LeaseSpace(1), 7, 9}, Incarnation(2), from_seconds(3)})).ok());
  EXPECT_TRUE(
      begin_after(put_claim({TrackId(1), StepNumber(3), {SampleId(38), SampleId(41)}, Incarnation(2)})).ok());
}

}  // namespace
}  // namespace gossamer::cluster
