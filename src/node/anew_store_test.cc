// SPDX-License-Identifier: Apache-2.0
#include "node/anew_store.h"

#include <gmock/gmock.h>
#include <gossamer/membership.pb.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "cluster/control/records.h"
#include "host/sim/clock.h"
#include "host/sim/store.h"

namespace gossamer::node {
namespace {

using cluster::begin_lead;
using cluster::read_records;

constexpr std::uint64_t kTracks = 3;

// A run with two members that have worked, and that is to end.
class AnewStoreTest : public ::testing::Test {
 protected:
  AnewStoreTest() : medium_(clock_, {.lease = std::nullopt}) {
    cluster::Records records;
    const auto begun = begin_lead(records, shape());
    EXPECT_TRUE(begun.ok());
    std::vector<host::Change> changes = *begun;
    records.lead.set_next_node(4);
    records.lead.set_next_incarnation(9);
    changes.push_back(cluster::put_lead(records.lead));
    for (const std::uint64_t i : {2U, 3U}) {
      membership::MemberRecord member;
      member.set_node(i);
      member.set_incarnation(i + 4);
      member.set_state(membership::SERVING);
      changes.push_back(cluster::put_member(member));
      for (std::uint64_t track = 0; track < kTracks; ++track)
        changes.push_back(cluster::put_mark({cluster::TrackId(track), Incarnation(i + 4), StepNumber(70)}));
    }
    cluster::FencedIncarnations fenced;
    fenced.fence(Incarnation(5));
    membership::Installed installed;
    installed.set_epoch(6);
    membership::Stopping stopping;
    stopping.set_reason("somebody ran 'gossamer stop'");
    const cluster::HoldingMap holdings{{placement::ThingId(1), NodeId(2)}};
    for (host::Change& one : cluster::put_holdings({}, holdings)) changes.push_back(std::move(one));
    for (const host::Change& one : {cluster::put_fenced(fenced), cluster::put_epoch(Epoch(7), fenced),
                                    cluster::put_installed(installed), cluster::put_stopping(stopping),
                                    cluster::put_token("id", "text"), cluster::put_committed(StepNumber(70))})
      changes.push_back(one);
    membership::NodeRecord node;
    node.set_node(2);
    node.set_token("id");
    changes.push_back(cluster::put_node(node));
    commit(changes);
  }

  static cluster::RunShape shape(std::uint64_t tracks = kTracks) {
    cluster::RunShape shape{.run = "run"};
    for (std::uint64_t track = 0; track < tracks; ++track) shape.tracks.emplace_back(track);
    return shape;
  }
  void commit(const std::vector<host::Change>& changes) {
    const auto store = medium_.open();
    EXPECT_TRUE(store->campaign({}).ok());
    EXPECT_TRUE(store->commit(changes).ok());
  }
  std::unique_ptr<AnewStore> open(const host::SimStoreFaults& faults = {}, std::uint64_t tracks = kTracks) {
    return std::make_unique<AnewStore>(medium_.open(faults),
                                       AnewStore::Begin{.step = StepNumber(50), .tracks = tracks});
  }
  // Leads as a coordinator does: campaign, load, first commit. The records that it begins with, if it can.
  static std::optional<cluster::Records> lead(AnewStore& store, std::uint64_t tracks = kTracks) {
    const auto campaign = store.campaign({});
    if (!campaign.ok() || !campaign->has_value()) return std::nullopt;
    const auto entries = store.load();
    if (!entries.ok()) return std::nullopt;
    auto records = read_records(*entries);
    EXPECT_TRUE(records.ok()) << records.error().message();
    const auto changes = begin_lead(*records, shape(tracks));
    EXPECT_TRUE(changes.ok()) << changes.error().message();
    if (!store.commit(*changes).ok()) return std::nullopt;
    return *std::move(records);
  }
  cluster::Records stored() {
    std::vector<host::Entry> entries;
    for (const auto& [key, value] : medium_.entries()) entries.push_back({.key = key, .value = value});
    auto records = read_records(entries);
    EXPECT_TRUE(records.ok());
    return *std::move(records);
  }
  static void expect_anew(const cluster::Records& records) {
    EXPECT_TRUE(records.members.empty());
    EXPECT_TRUE(records.holdings.empty());
    EXPECT_TRUE(records.marks.marks.empty());
    EXPECT_FALSE(records.stopping);
    EXPECT_EQ(records.installed.epoch(), 0U);
    EXPECT_EQ(records.marks.committed, StepNumber(50));
    EXPECT_EQ(records.epoch, Epoch(7));
    EXPECT_EQ(records.tokens.at("id"), "text");
    EXPECT_EQ(records.nodes.at(NodeId(2)).token(), "id");
    EXPECT_EQ(records.lead.next_node(), 4U);
    EXPECT_GE(records.lead.next_incarnation(), 10U);
    for (const std::uint64_t life : {5U, 6U, 7U})
      EXPECT_TRUE(records.fenced.contains(Incarnation(life))) << life;
    EXPECT_FALSE(records.fenced.contains(Incarnation(records.lead.incarnation())));
  }

  host::SimClock clock_;
  host::SimStoreMedium medium_;
};

// Claim: nobody holds, has done or is anything in a run that begins anew, and it does not end. Numbers,
// epochs and tokens are those of before. The lives of before are fenced.
TEST_F(AnewStoreTest, KeepsNumbersAndTokensAlone) {
  const auto store = open();
  const auto records = lead(*store);
  ASSERT_TRUE(records);
  expect_anew(*records);
  expect_anew(stored());
}

// Claim: only the first commit takes away. What is committed later stays, also for a lead that loads again.
TEST_F(AnewStoreTest, BeginsOnce) {
  const auto store = open();
  ASSERT_TRUE(lead(*store));
  ASSERT_TRUE(
      store->commit(std::vector{cluster::put_mark({cluster::TrackId(1), Incarnation(10), StepNumber(60)})})
          .ok());
  ASSERT_TRUE(store->resign().ok());
  ASSERT_TRUE(lead(*store));
  EXPECT_EQ(stored().marks.marks.size(), 1U);
}

// Claim: whichever operation fails, loses its answer or is the last of this process, the store is as it was
// but for some work of members, or it is anew. The next process that begins it anew finds no difference.
TEST_F(AnewStoreTest, CanBeCutShortAnywhere) {
  for (std::uint64_t k = 0; k < 4; ++k) {
    for (const int fault : {0, 1, 2}) {
      SCOPED_TRACE(::testing::Message() << "operation " << k << ", fault " << fault);
      host::SimStoreFaults faults;
      (fault == 0   ? faults.crash_at_operation
       : fault == 1 ? faults.fail_at_operation
                    : faults.lose_answer_at_operation) = k;
      {
        const auto store = open(faults);
        static_cast<void>(lead(*store));
      }
      const cluster::Records between = stored();
      if (between.members.empty()) expect_anew(between);
      const auto store = open();
      const auto records = lead(*store);
      ASSERT_TRUE(records);
      expect_anew(*records);
    }
  }
}

// Claim: a store of more entries than a commit may have begins anew, too, and with another number of tracks.
TEST_F(AnewStoreTest, LargeOnes) {
  std::vector<host::Change> changes;
  for (std::uint64_t life = 0; life < 4 * host::kMaxChanges; ++life) {
    if (changes.size() == host::kMaxChanges) commit(std::exchange(changes, {}));
    changes.push_back(
        cluster::put_mark({cluster::TrackId(life % kTracks), Incarnation(100 + life), StepNumber(1)}));
  }
  commit(changes);
  const auto store = open({}, 5);
  const auto records = lead(*store, 5);
  ASSERT_TRUE(records);
  expect_anew(*records);
  expect_anew(stored());
}

// Claim: a run that nobody has led has nothing to forget.
TEST_F(AnewStoreTest, EmptyOnes) {
  host::SimStoreMedium empty(clock_, {});
  AnewStore store(empty.open(), {.step = StepNumber(50), .tracks = kTracks});
  const auto records = lead(store);
  ASSERT_TRUE(records);
  EXPECT_EQ(records->epoch, Epoch());
}

}  // namespace
}  // namespace gossamer::node
