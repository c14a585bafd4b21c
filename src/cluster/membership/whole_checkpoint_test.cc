// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/whole_checkpoint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gossamer::cluster {
namespace {

constexpr std::uint64_t kParts = 4;
using Kept = std::map<NodeId, std::vector<KeptParts>>;
using Has = std::map<NodeId, std::set<std::uint64_t>>;

KeptParts kept_at(std::uint64_t lineage, std::uint64_t step, const std::vector<std::uint64_t>& parts) {
  return {.lineage = lineage, .step = StepNumber(step), .parts = parts};
}

// Claim: a checkpoint counts once those that rest have all parts of it. Nothing is put together of two steps.
TEST(WholeCheckpoint, IsWholeWithAllParts) {
  const auto of = [](const Kept& kept) { return newest_whole(std::nullopt, kept, 1, kParts); };
  EXPECT_EQ(of({{NodeId(2), {kept_at(1, 40, {0, 1})}}, {NodeId(3), {kept_at(1, 40, {1, 2})}}}), std::nullopt);
  EXPECT_EQ(of({{NodeId(2), {kept_at(1, 40, {0, 1})}}, {NodeId(3), {kept_at(1, 41, {2, 3})}}}), std::nullopt);
  const auto whole = of({{NodeId(2), {kept_at(1, 40, {0, 1}), kept_at(1, 30, {0, 1})}},
                         {NodeId(3), {kept_at(1, 40, {1, 2, 3}), kept_at(1, 30, {2, 3})}}});
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->step, StepNumber(40));
  EXPECT_EQ(whole->lineage, 1U);
  EXPECT_EQ(whole->has, (Has{{NodeId(2), {0, 1}}, {NodeId(3), {1, 2, 3}}}));
}

// Claim: what a node had that does not rest is known from the last one. One that rests knows best.
TEST(WholeCheckpoint, NamesTheDead) {
  const WholeCheckpoint last{
      .lineage = 1, .step = StepNumber(40), .has = {{NodeId(2), {0, 1}}, {NodeId(4), {2, 3}}}};
  EXPECT_EQ(newest_whole(last, {{NodeId(2), {kept_at(1, 40, {0, 1})}}, {NodeId(3), {}}}, 1, kParts), last);
  EXPECT_EQ(newest_whole(last, {}, 1, kParts), last);
  const auto less = newest_whole(last, {{NodeId(2), {kept_at(1, 40, {1})}}}, 1, kParts);
  ASSERT_TRUE(less.has_value());
  EXPECT_EQ(less->has, (Has{{NodeId(2), {1}}, {NodeId(4), {2, 3}}}));
  const auto more = newest_whole(last, {{NodeId(7), {kept_at(1, 40, {2, 3})}}}, 1, kParts);
  ASSERT_TRUE(more.has_value());
  EXPECT_EQ(more->has, (Has{{NodeId(2), {0, 1}}, {NodeId(4), {2, 3}}, {NodeId(7), {2, 3}}}));
}

// Claim: a later whole one takes the place of the last one, an earlier one does not.
TEST(WholeCheckpoint, TheNewestCounts) {
  const WholeCheckpoint last{.lineage = 1, .step = StepNumber(40), .has = {{NodeId(4), {0, 1, 2, 3}}}};
  const auto later = newest_whole(last, {{NodeId(2), {kept_at(1, 50, {0, 1, 2, 3})}}}, 1, kParts);
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->step, StepNumber(50));
  EXPECT_EQ(newest_whole(last, {{NodeId(2), {kept_at(1, 30, {0, 1, 2, 3})}}}, 1, kParts), last);
}

// Claim: steps of a lineage that was given up do not come back, however late they are. The checkpoint to
// which the run went back stays until the new lineage has one.
TEST(WholeCheckpoint, AGivenUpLineageStaysSo) {
  const WholeCheckpoint last{.lineage = 1, .step = StepNumber(40), .has = {{NodeId(2), {0, 1, 2, 3}}}};
  const KeptParts dead = kept_at(1, 70, {0, 1, 2, 3});
  EXPECT_EQ(newest_whole(last, {{NodeId(5), {dead}}}, 2, kParts), last);
  const auto anew = newest_whole(last, {{NodeId(5), {dead, kept_at(2, 39, {0, 1, 2, 3})}}}, 2, kParts);
  ASSERT_TRUE(anew.has_value());
  EXPECT_EQ(anew->lineage, 2U);
  EXPECT_EQ(anew->step, StepNumber(39));
}

// Claim: parts that there are not, twice the same, or too many checkpoints are words that no member can say.
TEST(WholeCheckpoint, WhatCannotBeKept) {
  const auto can = [](const std::vector<KeptParts>& kept, std::uint64_t parts = kParts) {
    return can_be_kept(kept, parts);
  };
  EXPECT_TRUE(can({}));
  EXPECT_TRUE(can({}, 0));
  EXPECT_TRUE(can({kept_at(1, 40, {}), kept_at(1, 41, {0, 3})}));
  EXPECT_FALSE(can({kept_at(1, 40, {0, 4})}));
  EXPECT_FALSE(can({kept_at(1, 40, {0})}, 0));
  EXPECT_FALSE(can({kept_at(1, 40, {0, 0})}));
  EXPECT_FALSE(can({kept_at(1, 40, {1, 0})}));
  EXPECT_TRUE(can(std::vector<KeptParts>(4, kept_at(1, 40, {0}))));
  EXPECT_FALSE(can(std::vector<KeptParts>(5, kept_at(1, 40, {0}))));
}

}  // namespace
}  // namespace gossamer::cluster
