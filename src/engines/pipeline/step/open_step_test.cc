// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gossamer::pipeline {
namespace {

using Then = OpenStep::Then;
constexpr StepNumber kOpen{7};

Attempt attempt(std::uint64_t epoch, StepNumber step = kOpen) {
  return {.step = step, .epoch = Epoch(epoch)};
}

DecidedLayout layout(std::uint32_t stages) {
  DecidedLayout layout{.epoch = Epoch(3), .step = kOpen};
  for (std::uint32_t stage = 0; stage < stages; ++stage)
    layout.stages.push_back({.first = 2 * stage, .last = 2 * stage + 2});
  for (std::uint64_t node = 0; node < 8; ++node) layout.members[NodeId(node)] = 0;
  return layout;
}

RestReport computing(std::uint32_t stage) {
  return {.installed = Epoch(3), .stage = stage, .applied = kOpen};
}

RestReport has_sum(std::uint32_t stage, std::uint64_t epoch, double squared_norm = 1) {
  RestReport report = computing(stage);
  report.sum = {.attempt = attempt(epoch), .record = {.hash = 10 + stage, .squared_norm = squared_norm}};
  return report;
}

RestReport has_applied(std::uint32_t stage, std::uint64_t epoch, double squared_norm, double total) {
  RestReport report = computing(stage);
  report.applied = StepNumber(kOpen.value + 1);
  report.last = {.attempt = attempt(epoch),
                 .record = {.hash = 10 + stage, .squared_norm = squared_norm},
                 .total = total};
  return report;
}

std::map<NodeId, RestReport> reports(std::vector<RestReport> all) {
  std::map<NodeId, RestReport> by_node;
  for (std::size_t i = 0; i < all.size(); ++i) by_node[NodeId(2 + i)] = std::move(all[i]);
  return by_node;
}

OpenStep judge(std::vector<RestReport> all, std::uint32_t stages) {
  return judge_open_step(reports(std::move(all)), layout(stages), 0);
}

std::set<NodeId> wrong_ones(std::vector<RestReport> all) {
  return contradicting(reports(std::move(all)), layout(2)).from_most;
}

std::set<NodeId> disputed_ones(std::vector<RestReport> all) {
  return contradicting(reports(std::move(all)), layout(2)).disputed;
}

// Claim: a step begins again if one holder lacks the sum of the others' attempt, and nobody has applied it.
TEST(OpenStep, BeginsAgain) {
  const OpenStep again{.then = Then::kBegin, .step = kOpen};
  EXPECT_EQ(judge({computing(0), computing(1)}, 2), again) << "nobody has it";
  EXPECT_EQ(judge({has_sum(0, 3), computing(1)}, 2), again) << "one has no sum";
  EXPECT_EQ(judge({has_sum(0, 3), has_sum(0, 4), has_sum(1, 4)}, 2).then, Then::kBegin) << "of two attempts";
}

// Claim: all apply what all have, with one squared norm for each stage, whether one has applied it or not. A
// member without a stage has no part in that.
TEST(OpenStep, AppliesWhatAllHave) {
  const OpenStep apply{.then = Then::kApply, .step = StepNumber(8), .attempt = attempt(3), .total = 9};
  EXPECT_EQ(judge({has_sum(0, 3, 4), has_sum(0, 3, 4), has_sum(1, 3, 5)}, 2), apply);
  EXPECT_EQ(judge({has_sum(0, 3, 4), has_applied(1, 3, 5, 9)}, 2), apply);
  EXPECT_EQ(judge({has_applied(0, 3, 4, 9), has_applied(1, 3, 5, 9), RestReport{}}, 2),
            (OpenStep{.then = Then::kBegin, .step = StepNumber(8)}))
      << "all have applied it";
  RestReport skipped = has_applied(1, 3, 5, 9);
  skipped.last->skipped = true;
  EXPECT_TRUE(judge({has_sum(0, 3, 4), skipped}, 2).skipped);
}

// Claim: a member to which the layout gives no stage is no holder, whatever it has. The others have gone on
// without it.
TEST(OpenStep, MembersOfTheLayoutAlone) {
  DecidedLayout without = layout(2);
  without.members.erase(NodeId(4));
  RestReport behind = computing(1);
  behind.installed = Epoch(2);
  behind.applied = StepNumber(3);
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), has_sum(1, 3), behind}), without, 0).then, Then::kApply);
  RestReport invented = has_sum(9, 3);
  EXPECT_EQ(judge({has_sum(0, 3), has_sum(1, 3), invented}, 2).then, Then::kApply);
}

// Claim: what is not finite is applied by nobody. The step is done again without a codec, once.
TEST(OpenStep, NotFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const OpenStep again{.then = Then::kBegin, .step = kOpen, .tries = 1};
  for (const double norm : {infinite, none, -1.0}) {
    OpenStep verdict = judge({has_sum(0, 3, norm), has_sum(0, 3, norm), has_sum(1, 3)}, 2);
    verdict.total = 0;
    EXPECT_EQ(verdict, again) << norm;
  }
  RestReport zeros = has_sum(1, 3);
  zeros.sum->record.not_finite = kGivenZeros;
  EXPECT_EQ(judge({has_sum(0, 3), zeros}, 2).tries, 1U);
  DecidedLayout exact = layout(2);
  exact.exact = true;
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), zeros}), exact, 0).then, Then::kNotFinite);
  zeros.sum->attempt.tries = 1;
  RestReport other = has_sum(0, 3);
  other.sum->attempt.tries = 1;
  EXPECT_EQ(judge({other, zeros}, 2).then, Then::kNotFinite);
}

// Claim: a step that begins again keeps its try. The next one begins with the codec.
TEST(OpenStep, Tries) {
  DecidedLayout second = layout(2);
  second.tries = 1;
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1)}), second, 0).tries, 1U);
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), has_sum(1, 3)}), second, 0).tries, 0U);
  EXPECT_EQ(judge_open_step(reports({has_applied(0, 3, 1, 2), has_applied(1, 3, 1, 2)}), second, 0).tries,
            0U);
}

// Claim: peers with different sums, roots or records of the step before: the minority is named, and word
// against word is a dispute. Nobody applies the sum meanwhile.
TEST(OpenStep, PeersDiffer) {
  const auto change_hash = [](StepRecord& one) { one.hash = 99; };
  const auto change_norm = [](StepRecord& one) { one.squared_norm = 2; };
  const auto change_root = [](StepRecord& one) { one.root = 99; };
  const auto change_before = [](StepRecord& one) { one.records_before = 99; };
  for (const auto& change :
       std::vector<std::function<void(StepRecord&)>>{change_hash, change_norm, change_root, change_before}) {
    RestReport other = has_sum(0, 3);
    change(other.sum->record);
    const OpenStep most = judge({has_sum(0, 3), has_sum(0, 3), other, has_sum(1, 3)}, 2);
    EXPECT_EQ(most.then, Then::kDiffer);
    EXPECT_EQ(most.named, std::set{NodeId(4)});
    EXPECT_FALSE(most.attempt);
  }
  RestReport other = has_sum(0, 3);
  other.sum->record.hash = 99;
  const OpenStep two = judge({has_sum(0, 3), other, has_sum(1, 3)}, 2);
  EXPECT_EQ(two.then, Then::kDispute);
  EXPECT_EQ(two.named, (std::set{NodeId(2), NodeId(3)}));
}

// Claim: a stage that has not added the tokens of the step keeps it from being applied. A dead member's
// tokens are not known. So a stage that lacks a member may have any number of tokens, but not too many.
TEST(OpenStep, Tokens) {
  DecidedLayout both = layout(2);
  both.members = {{NodeId(2), 0}, {NodeId(3), 1}, {NodeId(4), 1}};
  const auto verdict = [&](std::uint64_t first, std::uint64_t second) {
    RestReport one = has_sum(0, 3);
    RestReport other = has_sum(1, 3);
    one.sum->record.tokens = first;
    other.sum->record.tokens = second;
    return judge_open_step(reports({one, other}), both, 100).then;
  };
  EXPECT_EQ(verdict(100, 40), Then::kApply);
  EXPECT_EQ(verdict(99, 40), Then::kBegin);
  EXPECT_EQ(verdict(100, 101), Then::kBegin);
  both.epoch = Epoch(4);
  EXPECT_EQ(verdict(99, 40), Then::kApply) << "members of an earlier layout are not known";
}

// Claim: a sum whose records were here and did not fit is applied by nobody, also if those have died since
// that it did not fit with.
TEST(OpenStep, RefusedStaysSo) {
  RestReport refused = has_sum(0, 3);
  refused.sum->refused = true;
  EXPECT_EQ(judge({refused, has_sum(1, 3)}, 2).then, Then::kBegin);
}

// Claim: a step that a survivor has applied never begins again. Where sums or totals of others differ from
// what was applied, that is a lie of the few, or a dispute.
TEST(OpenStep, WhatIsAppliedStays) {
  EXPECT_EQ(judge({has_sum(0, 3, 4), has_applied(1, 3, 5, 100)}, 2).then, Then::kDispute);
  EXPECT_EQ(judge({computing(0), has_applied(1, 3, 5, 9)}, 2).then, Then::kDispute);
  EXPECT_EQ(judge({has_sum(0, 4, 4), has_applied(1, 3, 5, 9)}, 2).then, Then::kDispute) << "of two attempts";
  const OpenStep total =
      judge({has_sum(0, 3, 4), has_applied(1, 3, 5, 9), has_applied(1, 3, 5, 9), has_applied(1, 3, 5, 8)}, 2);
  EXPECT_EQ(total.then, Then::kDiffer);
  EXPECT_EQ(total.named, std::set{NodeId(5)});
  RestReport zeros = has_sum(0, 3, 4);
  zeros.sum->record.not_finite = kSentZeros;
  EXPECT_EQ(judge({zeros, has_applied(1, 3, 5, 9)}, 2).then, Then::kDispute)
      << "nobody could have applied it";
  RestReport other = has_sum(0, 3, 4);
  other.sum->record.hash = 99;
  const OpenStep hash = judge({has_sum(0, 3, 4), has_sum(0, 3, 4), other, has_applied(1, 3, 5, 9)}, 2);
  EXPECT_EQ(hash.then, Then::kDiffer);
  EXPECT_EQ(hash.named, std::set{NodeId(4)});
}

// Claim: a stage without a holder goes to a member that has it whole as of the open step, if nobody has
// applied that step. Otherwise all go back, and the verdict names the stages for which they do.
TEST(OpenStep, LostStages) {
  RestReport keeps = has_sum(0, 3);
  keeps.whole = {{.layers = {.first = 2, .last = 4}, .step = kOpen},
                 {.layers = {.first = 4, .last = 6}, .step = StepNumber(6)}};
  EXPECT_EQ(judge({has_sum(0, 3), keeps}, 2),
            (OpenStep{.then = Then::kBegin, .step = kOpen, .taken = {{1, NodeId(3)}}}));
  EXPECT_EQ(judge({has_sum(0, 3), keeps}, 3), (OpenStep{.then = Then::kGoBack, .step = kOpen, .lost = {2}}));
  EXPECT_EQ(judge({keeps}, 2).then, Then::kGoBack) << "it alone has its own stage";
  EXPECT_EQ(judge({has_applied(0, 3, 1, 2), keeps}, 2).then, Then::kGoBack) << "the copy lacks a step";
  RestReport of_before = keeps;
  for (WholeLayers& one : of_before.whole) one.lineage = 1;
  EXPECT_EQ(judge({has_sum(0, 3), of_before}, 2).then, Then::kGoBack) << "of another lineage";
  RestReport both = keeps;
  both.whole = {{.layers = {.first = 2, .last = 4}, .step = kOpen},
                {.layers = {.first = 4, .last = 6}, .step = kOpen}};
  EXPECT_EQ(judge({has_sum(0, 3), both}, 3).then, Then::kGoBack) << "one member takes one stage";
  EXPECT_EQ(judge({RestReport{}}, 2).then, Then::kGoBack) << "no holder at all";
  RestReport has_first = computing(1);
  has_first.whole = {{.layers = {.first = 0, .last = 2}, .step = kOpen}};
  RestReport has_third = computing(1);
  has_third.whole = {{.layers = {.first = 4, .last = 6}, .step = kOpen}};
  EXPECT_EQ(judge({has_first, has_third}, 3).then, Then::kGoBack) << "nobody would be left with the second";
  RestReport loading = computing(1);
  loading.stage.reset();
  loading.loads = true;
  EXPECT_EQ(judge({has_sum(0, 3), loading}, 2).lost, std::set<std::uint32_t>{1}) << "it has not got it yet";
  loading.stage = 1;
  EXPECT_EQ(judge({computing(0), loading}, 2).then, Then::kBegin) << "it still has it while it loads another";
}

// Claim: a copy of a lost stage counts if its root is the one that records of the step have named. Without
// such records all copies must agree.
TEST(OpenStep, RootsOfCopies) {
  const auto keeps = [](std::uint64_t root) {
    RestReport report = computing(0);
    report.whole = {{.layers = {.first = 2, .last = 4}, .step = kOpen, .root = root}};
    return report;
  };
  RestReport knows = computing(0);
  knows.roots = {.step = kOpen, .by_stage = {{1, 5}}};
  EXPECT_EQ(judge({knows, keeps(5)}, 2).taken, (std::map{std::pair(1U, NodeId(3))}));
  EXPECT_EQ(judge({knows, keeps(6)}, 2).then, Then::kGoBack);
  EXPECT_EQ(judge({knows, keeps(6), keeps(5)}, 2).taken, (std::map{std::pair(1U, NodeId(4))}));
  EXPECT_EQ(judge({computing(0), keeps(6), keeps(5)}, 2).then, Then::kGoBack) << "word against word";
  EXPECT_EQ(judge({computing(0), keeps(6), keeps(6)}, 2).taken, (std::map{std::pair(1U, NodeId(3))}));
  knows.roots->step = StepNumber(6);
  EXPECT_EQ(judge({knows, keeps(6)}, 2).taken, (std::map{std::pair(1U, NodeId(3))})) << "of a step before";
}

// Claim: while one member of a layout that goes back has not loaded the checkpoint, all go back to that one.
TEST(OpenStep, GoingBackGoesOn) {
  DecidedLayout back = layout(2);
  back.goes_back = true;
  RestReport before = computing(1);
  before.installed = Epoch(2);
  before.applied = StepNumber(900);
  EXPECT_EQ(judge_open_step(reports({computing(0), before}), back, 0).then, Then::kGoBack);
  EXPECT_TRUE(contradicting(reports({computing(0), before, before}), back).none()) << "of different layouts";
  RestReport loads = computing(1);
  loads.loads = true;
  EXPECT_EQ(judge_open_step(reports({computing(0), loads}), back, 0).then, Then::kGoBack);
  back.members.erase(NodeId(4));
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1), RestReport{}}), back, 0).then, Then::kBegin)
      << "a member that joins";
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1)}), back, 0).then, Then::kBegin);
}

// Claim: reports that cannot be true beside those of more than half of the others are named.
TEST(OpenStep, NamesContradictions) {
  RestReport other_lineage = computing(0);
  other_lineage.lineage = 1;
  RestReport far = computing(0);
  far.applied = StepNumber(9);
  RestReport fewer = computing(0);
  fewer.applied = StepNumber(kOpen.value - 1);
  RestReport other_step = has_sum(0, 3);
  other_step.sum->attempt.step = StepNumber(6);
  RestReport fewer_with_sum = fewer;
  fewer_with_sum.sum = has_sum(0, 3).sum;
  fewer_with_sum.sum->attempt.step = fewer.applied;
  for (const RestReport& wrong : {other_lineage, far, fewer, fewer_with_sum, other_step}) {
    EXPECT_EQ(wrong_ones({has_sum(0, 3), wrong, has_sum(0, 3), has_sum(1, 3)}), std::set{NodeId(3)});
    EXPECT_TRUE(disputed_ones({has_sum(0, 3), wrong, has_sum(0, 3), has_sum(1, 3)}).empty());
  }
  EXPECT_EQ(wrong_ones({computing(0), has_applied(0, 3, 1, 2), has_applied(1, 3, 1, 2)}), std::set{NodeId(2)})
      << "it gave its record, so it had its sum";
  EXPECT_EQ(wrong_ones({computing(0), computing(0), has_applied(1, 3, 1, 2)}), std::set{NodeId(4)});
  const std::set both{NodeId(2), NodeId(3)};
  EXPECT_EQ(disputed_ones({computing(0), has_applied(1, 3, 1, 2), has_sum(1, 3)}), both)
      << "word against word";
  EXPECT_EQ(disputed_ones({computing(0), far}), both);
  EXPECT_EQ(disputed_ones({computing(0), other_lineage}), both);
  EXPECT_TRUE(
      contradicting(reports({has_sum(0, 3), has_applied(0, 3, 1, 2), has_sum(1, 3)}), layout(2)).none());
}

}  // namespace
}  // namespace gossamer::pipeline
