// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {
namespace {

const FleetShape kShape{.network = {.features = 4, .labels = 8, .hidden = 16}, .shard_shift = 1};

// What a member reports; without `applied` it holds nothing.
struct Reported {
  std::optional<std::uint64_t> applied = {};
  std::uint64_t known = 0;                   // the newest snapshot that it knows all have stored
  std::optional<std::uint64_t> stored = {};  // one that it has stored since
  std::uint64_t installed = 3;               // epoch
};

membership::Frozen frozen(const Reported& one) {
  sparse_fleet::Report report;
  report.set_applied(one.applied.value_or(0));
  if (one.applied) write_part(no_part(kShape), *report.mutable_part());
  report.add_copies()->set_step(one.known);
  if (one.stored) report.add_copies()->set_step(*one.stored);
  membership::Frozen said;
  said.set_installed(one.installed);
  said.set_report(report.SerializeAsString());
  return said;
}

std::map<NodeId, membership::Frozen> frozen(const std::vector<Reported>& all) {
  std::map<NodeId, membership::Frozen> reports;
  for (std::size_t i = 0; i < all.size(); ++i) reports[NodeId(2 + i)] = frozen(all[i]);
  return reports;
}

// The nodes, from 2 on, that contradict the others.
std::vector<std::uint64_t> contradicting(const std::vector<Reported>& all,
                                         const FleetWorkload::Options& options = {}) {
  std::vector<std::uint64_t> nodes;
  for (const NodeId node : FleetWorkload(kShape, options).contradicting(frozen(all)))
    nodes.push_back(node.value);
  return nodes;
}

using Nodes = std::vector<std::uint64_t>;

// Claim: each output shard is a thing to be placed and a track of steps, and takes so many bytes of its
// holder's memory.
TEST(FleetWorkload, ShardsArePlaced) {
  const FleetWorkload workload(kShape, {.shard_bytes = 4096});
  const auto things = workload.things();
  const auto tracks = workload.tracks();
  ASSERT_EQ(things.size(), 4U);
  ASSERT_EQ(tracks.size(), 4U);
  for (std::size_t shard = 0; shard < things.size(); ++shard) {
    EXPECT_EQ(things[shard].id, placement::ThingId(shard));
    EXPECT_EQ(things[shard].bytes, 4096U) << shard;
    EXPECT_EQ(workload.thing_of(tracks[shard]), things[shard].id);
  }
}

// Members that are a step apart, hold nothing, or know of snapshots that were stored, contradict nobody.
TEST(FleetWorkload, MembersThatAgree) {
  EXPECT_EQ(contradicting({}), Nodes());
  EXPECT_EQ(contradicting({{.applied = 7}}), Nodes());
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 8}, {.applied = 7}, {}, {.applied = 8, .stored = 8}}),
            Nodes());
  EXPECT_EQ(contradicting({{}, {.applied = std::nullopt, .known = 900}}), Nodes());
  // All have stored the snapshot of step 5, and some have heard that all have. One has stored the next one.
  EXPECT_EQ(
      contradicting(
          {{.applied = 8, .known = 5}, {.applied = 8, .stored = 5}, {.applied = 8, .known = 5, .stored = 8}}),
      Nodes());
  // A snapshot of the same step again, for the copies that are not where they should be.
  EXPECT_EQ(contradicting({{.applied = 5, .known = 5, .stored = 5}, {.applied = 5, .known = 5}}), Nodes());
}

// One member's report never speaks against more than itself, whatever it says.
TEST(FleetWorkload, OneLiarIsFound) {
  for (const std::uint64_t lie : {0ULL, 5ULL, 9ULL, 10ULL, 1ULL << 62, ~0ULL}) {
    for (std::size_t liar = 0; liar < 4; ++liar) {
      std::vector<Reported> all{{.applied = 7}, {.applied = 7}, {.applied = 8}, {.applied = 7}};
      if (liar == 2) std::swap(all[2], all[3]);
      all[liar].applied = lie;
      EXPECT_EQ(contradicting(all), Nodes{2 + liar}) << lie << " of " << liar;
    }
  }
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 7, .stored = 9}, {.applied = 8}}), Nodes{3});
  EXPECT_EQ(contradicting({{.applied = 6}, {.applied = 7}, {.applied = 7}, {.applied = 8}, {.applied = 8}}),
            Nodes{2});
}

// Claim: the same for snapshots, older ones and newer ones. Where words stand against each other nobody is
// fenced.
TEST(FleetWorkload, OneLiarAboutSnapshotsIsFound) {
  for (const Reported& lie : std::vector<Reported>{{.applied = 8, .known = 0},
                                                   {.applied = 8, .known = 4},
                                                   {.applied = 8, .known = 6},
                                                   {.applied = 8, .known = 8}}) {
    for (std::size_t liar = 0; liar < 3; ++liar) {
      std::vector<Reported> all(3, {.applied = 8, .known = 5});
      all[liar] = lie;
      EXPECT_EQ(contradicting(all), Nodes{2 + liar}) << lie.known << " of " << liar;
    }
  }
  EXPECT_EQ(contradicting({{.applied = 8, .known = 5}, {.applied = 8, .known = 0}}), Nodes());
}

// Claim: a member has no part before a decision was installed, and no step that the run does not have.
TEST(FleetWorkload, WhatNoMemberCanSay) {
  EXPECT_EQ(contradicting({{.applied = 0, .installed = 0}, {.applied = std::nullopt, .installed = 0}}),
            Nodes{2});
  const FleetWorkload::Options options{.start = StepNumber(100), .steps = 200};
  EXPECT_EQ(contradicting({{.applied = 100, .known = 100}, {.applied = 101, .known = 100}}, options),
            Nodes());
  EXPECT_EQ(contradicting({{.applied = 200, .known = 100}}, options), Nodes());
  EXPECT_EQ(contradicting({{.applied = 99, .known = 99}}, options), Nodes{2});
  EXPECT_EQ(contradicting({{.applied = 201, .known = 100}}, options), Nodes{2});
  EXPECT_EQ(contradicting({{.applied = 150, .known = 99}}, options), Nodes{2});
  EXPECT_EQ(contradicting({{.applied = 1ULL << 62, .known = 100}, {}}, options), Nodes{2});
}

// The member that is ahead of the only other one is not believed: it took part in no step that the other has
// begun.
TEST(FleetWorkload, WordAgainstWord) {
  EXPECT_EQ(contradicting({{.applied = 7}, {.applied = 9}}), Nodes{3});
  EXPECT_EQ(contradicting({{.applied = ~0ULL}, {.applied = 7}}), Nodes{2});
}

// Claim: nothing stands in a report twice, or in another order than a member writes it.
TEST(FleetWorkload, ReadsWhatAMemberWrites) {
  const FleetWorkload workload(kShape, {});
  sparse_fleet::Report good;
  sparse::NetworkPart part = with_shards(no_part(kShape), kShape, {0, 2});
  part.columns = {0, 16};
  write_part(part, *good.mutable_part());
  for (const std::uint64_t step : {5U, 8U}) {
    good.add_copies()->set_step(step);
    write_pieces({{0, 0}, {1, 1}, {1, 3}}, *good.mutable_copies()->rbegin()->mutable_pieces());
  }
  const auto readable = [&](const auto& change) {
    sparse_fleet::Report bad = good;
    change(bad);
    return workload.readable(bad.SerializeAsString());
  };
  EXPECT_TRUE(readable([](auto&) {}));
  EXPECT_FALSE(readable([](auto& bad) { bad.mutable_part()->add_shards(2); }));
  EXPECT_FALSE(readable([](auto& bad) { bad.mutable_copies(0)->add_pieces(0); }));
  EXPECT_FALSE(readable([](auto& bad) { bad.mutable_copies(0)->add_pieces(1ULL << 32 | 3); }));
  EXPECT_FALSE(readable([](auto& bad) { bad.mutable_copies(1)->set_step(4); }));
  EXPECT_FALSE(readable([](auto& bad) { bad.add_copies()->set_step(9); }));
}

// Claim: whatever the reports are that contradict nobody, members can carry out what is decided. It begins
// with no snapshot that some believed member has forgotten: its log begins later.
TEST(FleetWorkload, DecidesWhatCanBeCarriedOut) {
  Rng rng(3, Purpose::kTest);
  std::size_t carried_out = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<Reported> all;
    for (std::uint64_t i = 1 + rng.below(4); i > 0; --i) {
      Reported one{.known = 98 + rng.below(6), .installed = rng.below(4)};
      if (rng.below(4) > 0) one.applied = 98 + rng.below(8);
      if (rng.below(2) > 0) one.stored = one.known + rng.below(4);
      all.push_back(one);
    }
    FleetWorkload workload(kShape, {.start = StepNumber(100), .steps = 104});
    auto reports = frozen(all);
    for (auto odd = workload.contradicting(reports); !odd.empty(); odd = workload.contradicting(reports))
      std::erase_if(reports, [&](const auto& one) { return odd.contains(one.first); });
    if (reports.empty()) continue;
    const cluster::View view;
    const cluster::HoldingMap before;
    cluster::HoldingMap after;
    for (std::uint64_t shard = 0; shard < kShape.shards(); ++shard)
      after[placement::ThingId(shard)] = reports.begin()->first;
    const auto decision =
        workload.decide({.view = view, .reports = reports, .before = before, .after = after});
    const auto layout = read_layout(decision.bytes, kShape);
    ASSERT_TRUE(layout.ok()) << "round " << round;
    EXPECT_GE(layout->resume, StepNumber(100));
    EXPECT_LE(layout->resume, StepNumber(104));
    for (const auto& [node, said] : reports) {
      sparse_fleet::Report report;
      ASSERT_TRUE(report.ParseFromString(said.report()));
      if (!report.has_part()) continue;
      EXPECT_LE(StepNumber(report.copies(0).step()), layout->base) << "round " << round;
    }
    ++carried_out;
  }
  EXPECT_GT(carried_out, 5'000U);
}

}  // namespace
}  // namespace gossamer::sparse_engine
