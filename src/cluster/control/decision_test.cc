// SPDX-License-Identifier: Apache-2.0
//
// What a decision rests on, from one coordinator to the next.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

constexpr std::uint64_t kLayers = 4;

membership::Kept keeps(std::uint64_t lineage, std::uint64_t step, const std::vector<std::uint64_t>& parts) {
  membership::Kept kept;
  kept.set_lineage(lineage);
  kept.set_step(step);
  for (const std::uint64_t part : parts) kept.add_parts(part);
  return kept;
}

// Decides by what it was given, and says so in its decision.
class LayersWorkload final : public Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override { return {}; }
  [[nodiscard]] std::uint64_t checkpoint_parts() const override { return kLayers; }
  [[nodiscard]] bool readable(const std::string&) const override { return true; }
  [[nodiscard]] Decision decide(const Rest& rest) override {
    given.push_back({.paces = rest.paces, .checkpoint = rest.checkpoint, .lineage = rest.lineage});
    return {.bytes = "layers", .lineage = rest.lineage + 1};
  }
  struct Given {
    std::map<NodeId, Pace> paces;
    std::optional<WholeCheckpoint> checkpoint;
    std::uint64_t lineage = 0;
    bool operator==(const Given&) const = default;
  };
  std::vector<Given> given;
};

class DecisionTest : public ::testing::Test {
 protected:
  DecisionTest() { lead({}); }
  // A coordinator takes up what the store has.
  void lead(Records records) {
    auto changes = begin_lead(records, {.run = "run", .batch = 1, .tracks = {}});
    ASSERT_TRUE(changes.ok());
    keep(*changes, kept_);
    CoordinatorOptions options;
    options.run = "run";
    options.generation = Generation(1);
    options.first_members = 2;
    coordinator_.emplace(std::move(options), std::move(records), workload_, links_, now_);
  }
  void lead_again() {
    std::vector<host::Entry> entries;
    for (const auto& [key, value] : kept_) entries.push_back({.key = key, .value = value});
    auto records = read_records(entries);
    ASSERT_TRUE(records.ok());
    lead(*std::move(records));
    store();
    for (const net::PeerId peer : peers_) say(peer, [](auto& said) { said.mutable_here(); });
  }
  void begin(std::uint64_t node) {
    membership::BeginAsk ask;
    ask.set_run("run");
    ask.set_memory_bytes(1 << 20);
    ask.set_cores(1);
    membership::BeginAnswer begun;
    coordinator_->begin(
        NodeId(node), ask.SerializeAsString(),
        [&](const Result<std::string>& answer) { ASSERT_TRUE(begun.ParseFromString(*answer)); }, now_);
    store();
    peers_.push_back({NodeId(node), Incarnation(begun.incarnation())});
    say(peers_.back(), [](auto& said) { said.mutable_here(); });
    say(peers_.back(), [](auto& said) { said.mutable_ready(); });
  }
  template <class Fill>
  void say(net::PeerId from, Fill fill) {
    membership::ToCoordinator said;
    fill(said);
    coordinator_->on(net::Arrived{.from = from, .message = pack(said), .receipt = {}}, now_);
    store();
  }
  void rest(const std::map<std::uint64_t, membership::Kept>& kept) {
    for (const net::PeerId peer : peers_) {
      say(peer, [&](auto& said) {
        said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value);
        if (kept.contains(peer.node.value)) *said.mutable_frozen()->add_kept() = kept.at(peer.node.value);
      });
    }
  }
  void store() {
    while (const auto changes = coordinator_->next_commit()) {
      keep(*changes, kept_);
      coordinator_->committed(now_);
    }
  }

  Instant now_;
  Nobody nobody_;
  LayersWorkload workload_;
  StoreRows kept_;
  net::Links links_{nobody_, {.run = "run", .self = {kCoordinatorNode, Incarnation(1)}, .program = "test"}};
  std::vector<net::PeerId> peers_;
  std::optional<Coordinator> coordinator_;
};

// Claim: a coordinator that takes over decides with the same paces, checkpoint and lineage as the one before,
// though members have not measured anything anew, and one that had a part is gone.
TEST_F(DecisionTest, TheNextCoordinatorKnowsTheSame) {
  begin(10);
  rest({});
  begin(11);
  rest({});
  const auto measured = [&](net::PeerId peer, double speed) {
    for (std::size_t i = 0; i < SmoothedPace::kWindow; ++i)
      say(peer, [&](auto& said) {
        said.mutable_beat()->set_speed(speed);
        said.mutable_beat()->set_own_work(speed / 2);
      });
  };
  measured(peers_[0], 100);
  measured(peers_[1], 300);
  begin(12);
  rest({{10, keeps(1, 40, {0, 1})}, {11, keeps(1, 40, {2, 3})}});
  ASSERT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  const LayersWorkload::Given before = workload_.given.back();
  ASSERT_TRUE(before.checkpoint.has_value());
  EXPECT_EQ(before.lineage, 1U);
  EXPECT_EQ(before.paces.at(NodeId(10)), (Pace{.speed = 100, .own_work = 50}));
  EXPECT_EQ(before.paces.at(NodeId(11)), (Pace{.speed = 300, .own_work = 150}));
  EXPECT_EQ(before.paces.at(NodeId(12)), (Pace{.speed = 200, .own_work = 50})) << "as the others for a core";
  lead_again();
  coordinator_->blame(peers_[1], Error{.what = "it is dead"}, now_);
  store();
  peers_.erase(peers_.begin() + 1);
  rest({{10, keeps(1, 40, {0, 1})}});
  ASSERT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  const LayersWorkload::Given after = workload_.given.back();
  EXPECT_EQ(after.lineage, 2U);
  EXPECT_EQ(after.checkpoint, before.checkpoint);
  EXPECT_EQ(after.paces.at(NodeId(10)), before.paces.at(NodeId(10)));
  EXPECT_EQ(after.paces.at(NodeId(12)), before.paces.at(NodeId(12)));
  EXPECT_EQ(after.paces.size(), 2U);
}

// Claim: a member that says that it keeps what there is not is fenced.
TEST_F(DecisionTest, FencesWhatCannotBeSaid) {
  begin(10);
  rest({});
  begin(11);
  say(peers_[1], [&](auto& said) {
    said.mutable_frozen()->set_epoch(coordinator_->view().epoch().value);
    *said.mutable_frozen()->add_kept() = keeps(1, 40, {kLayers});
  });
  EXPECT_FALSE(coordinator_->lives(peers_[1]));
  EXPECT_TRUE(coordinator_->lives(peers_[0]));
}

}  // namespace
}  // namespace gossamer::cluster
