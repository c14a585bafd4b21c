// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/step_member.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/test_generated_block.h"

namespace gossamer::pipeline {
namespace {

using Change = StepMember::Change;
using Phase = StepPhase;

constexpr StepNumber kFirst{7};
constexpr std::uint64_t kTokensOfOne = 10;

// Members 2 and 3 hold the first stage, member 4 the second.
DecidedLayout layout_of_three(std::uint64_t epoch, StepNumber step = kFirst) {
  return {.epoch = Epoch(epoch),
          .step = step,
          .stages = {{.first = 0, .last = 2}, {.first = 2, .last = 4}},
          .members = {{NodeId(2), 0}, {NodeId(3), 0}, {NodeId(4), 1}}};
}

Attempt attempt_of(std::uint64_t epoch, StepNumber step = kFirst) {
  return {.step = step, .epoch = Epoch(epoch)};
}

Records records_of(const StepRecord& own, NodeId self, std::uint8_t wishes = 0) {
  Records all;
  for (const auto& [node, stage] : layout_of_three(1).members) {
    all[node] = own;
    all[node].wishes = wishes;
    if (stage == 1) all[node].tokens = 2 * kTokensOfOne;
  }
  all[self] = own;
  return all;
}

// Member 2, with two microbatches of a step.
class StepMemberTest : public ::testing::Test {
 protected:
  StepMemberTest() {
    (void)member_.install({.layout = layout_of_three(1), .microbatches = 2});
    EXPECT_EQ(member_.phase(), Phase::kLoading);
    EXPECT_TRUE(member_.loaded(5, {}).begin.has_value());
  }
  StepActions to_sum() {
    const Attempt here = member_.attempt();
    for (int i = 0; i < 2; ++i) {
      (void)member_.back(here);
      (void)member_.added(here);
    }
    return member_.all_back(NodeId(3), here);
  }
  StepActions to_records() {
    (void)to_sum();
    return member_.summed(member_.attempt(), {.hash = 0, .squared_norm = 1, .tokens = kTokensOfOne});
  }
  StepActions to_update(std::uint8_t wishes = 0) {
    const StepRecord own = *to_records().records;
    return member_.records(member_.attempt(), records_of(own, NodeId(2), wishes), 2 * kTokensOfOne);
  }

  StepMember member_{{.self = NodeId(2), .end = StepNumber(20)}};
};

// Claim: docs/protocols/pipeline-step.md shows the table of transitions that the code follows.
TEST(StepMemberTable, StandsInThePage) {
  EXPECT_EQ(block_difference({.page = GOSSAMER_TREE "/docs/protocols/pipeline-step.md",
                              .name = "step-member-states",
                              .text = StepMember::transitions()}),
            "");
}

// Claim: a step goes from its microbatches over SUM and RECORDS to the update, and then to the next step.
TEST_F(StepMemberTest, OneStep) {
  const Attempt here = attempt_of(1);
  EXPECT_EQ(member_.attempt(), here);
  EXPECT_EQ(member_.back(here), StepActions{});
  EXPECT_EQ(member_.added(here), StepActions{});
  EXPECT_EQ(member_.back(here), StepActions{.all_back = true});
  EXPECT_EQ(member_.all_back(NodeId(3), here), StepActions{}) << "products are not added";
  EXPECT_EQ(member_.added(here), StepActions{.sum = here});
  const StepRecord record{.hash = 9, .squared_norm = 1, .root = 5, .tokens = kTokensOfOne};
  EXPECT_EQ(member_.summed(here, {.hash = 9, .squared_norm = 1, .tokens = kTokensOfOne}),
            StepActions{.records = record});
  const Records all = records_of(record, NodeId(2));
  const InstalledStep::Apply apply{.attempt = here, .total = 2};
  EXPECT_EQ(member_.records(here, all, 2 * kTokensOfOne), StepActions{.update = apply});
  EXPECT_EQ(member_.written(6), StepActions{.begin = attempt_of(1, StepNumber(8))});
  EXPECT_EQ(member_.report().last, (AppliedStep{.attempt = here, .record = record, .total = 2}));
  EXPECT_EQ(to_records().records->records_before, hash_of(all));
  EXPECT_EQ(member_.report().sum->record.root, 6U);
}

// Claim: early messages are kept until their attempt begins, late ones are dropped.
TEST_F(StepMemberTest, EarlyAndLate) {
  (void)member_.all_back(NodeId(3), attempt_of(2));
  (void)member_.change(Epoch(2), Change::kHard);
  (void)member_.all_back(NodeId(3), attempt_of(3));
  EXPECT_EQ(member_.install({.layout = layout_of_three(3)}).sum, attempt_of(3)) << "it has no microbatch";
  EXPECT_EQ(member_.summed(attempt_of(1), {}), StepActions{});
  EXPECT_EQ(member_.summed(attempt_of(2), {}), StepActions{});
  EXPECT_EQ(member_.phase(), Phase::kSumming);
  (void)member_.change(Epoch(4), Change::kHard);
  EXPECT_EQ(member_.install({.layout = layout_of_three(4)}).sum, std::nullopt);
  EXPECT_EQ(member_.all_back(NodeId(3), attempt_of(3)), StepActions{});
  EXPECT_FALSE(member_.came(attempt_of(3)));
  EXPECT_TRUE(member_.came(attempt_of(4)));
}

// Claim: from its report on, nothing of the old view counts for a member. Its report stays the same, also for
// the next change, and the decision that follows the last one alone is taken.
TEST_F(StepMemberTest, RestIsFinal) {
  const StepRecord own = *to_records().records;
  EXPECT_EQ(member_.change(Epoch(2), Change::kHard), (StepActions{.stop = true, .report = Epoch(2)}));
  const RestReport said = member_.report();
  EXPECT_EQ(said.sum->attempt, attempt_of(1));
  const StepMember rests = member_;
  EXPECT_EQ(member_.records(attempt_of(1), records_of(own, NodeId(2)), 2 * kTokensOfOne), StepActions{});
  EXPECT_EQ(member_.all_back(NodeId(3), attempt_of(1)), StepActions{});
  EXPECT_TRUE(member_ == rests);
  EXPECT_EQ(member_.change(Epoch(3), Change::kCanWait), StepActions{.report = Epoch(3)});
  EXPECT_TRUE(member_.report() == said);
  EXPECT_EQ(member_.install({.layout = layout_of_three(2)}), StepActions{}) << "a later change is known";
  const InstalledStep::Apply apply{.attempt = attempt_of(1), .total = 2};
  EXPECT_EQ(member_.install({.layout = layout_of_three(3, StepNumber(8)), .apply = apply}),
            StepActions{.update = apply});
}

// Claim: an update that has begun ends, and the report says that the step was applied.
TEST_F(StepMemberTest, UpdatesEnd) {
  EXPECT_TRUE(to_update().update.has_value());
  EXPECT_EQ(member_.change(Epoch(2), Change::kHard), StepActions{});
  EXPECT_EQ(member_.written(6), StepActions{.report = Epoch(2)});
  EXPECT_EQ(member_.report().applied, StepNumber(8));
}

// Claim: a member that is told of a change that can wait wishes rest in its next record. After a step in
// whose records one wished so, a member rests, also if it was told of nothing.
TEST_F(StepMemberTest, ChangesThatCanWait) {
  StepMember other = member_;
  EXPECT_EQ(member_.change(Epoch(2), Change::kCanWait), StepActions{});
  EXPECT_EQ(to_records().records->wishes, kWishRest);
  std::swap(other, member_);
  EXPECT_TRUE(to_update(kWishRest).update.has_value());
  EXPECT_EQ(member_.written(6), StepActions{});
  EXPECT_TRUE(member_.rests_unasked());
  EXPECT_EQ(member_.change(Epoch(2), Change::kCanWait), StepActions{.report = Epoch(2)});
  EXPECT_FALSE(member_.rests_unasked());
  (void)member_.install({.layout = layout_of_three(2, StepNumber(8)), .microbatches = 2});
  EXPECT_EQ(to_records().records->wishes, 0) << "Install clears wishes";
}

// Claim: a wish for a checkpoint is in one record. All save after a step in which one wished so.
TEST_F(StepMemberTest, Checkpoints) {
  member_.wish(kWishCheckpoint);
  EXPECT_EQ(to_records().records->wishes, kWishCheckpoint);
  const Records all = records_of(member_.report().sum->record, NodeId(2));
  EXPECT_TRUE(member_.records(member_.attempt(), all, 2 * kTokensOfOne).update.has_value());
  EXPECT_TRUE(member_.written(6).save);
  EXPECT_EQ(to_records().records->wishes, 0);
}

// Claim: where records do not fit, a member rests without a change, keeps its sum, and says that it is
// refused.
TEST_F(StepMemberTest, RecordsThatDoNotFit) {
  Records all = records_of(*to_records().records, NodeId(2));
  all[NodeId(4)].not_finite = kSentZeros;
  Records fewer = all;
  fewer.erase(NodeId(4));
  EXPECT_EQ(member_.records(attempt_of(1), fewer, 2 * kTokensOfOne), StepActions{});
  EXPECT_EQ(member_.phase(), Phase::kGathering) << "one is missing";
  EXPECT_EQ(member_.records(attempt_of(1), all, 2 * kTokensOfOne), StepActions{.stop = true});
  EXPECT_TRUE(member_.rests_unasked());
  EXPECT_TRUE(member_.report().sum->refused);
  EXPECT_EQ(member_.report().roots->by_stage.at(1), 5U);
  DecidedLayout again = layout_of_three(2);
  again.tries = 1;
  (void)member_.change(Epoch(2), Change::kHard);
  EXPECT_EQ(member_.install({.layout = again, .microbatches = 2}).begin->tries, 1U);
  EXPECT_TRUE(to_update().update.has_value());
  EXPECT_EQ(member_.written(6).begin->tries, 0U);
}

// Claim: a member that gets another stage keeps the one that it had, until it has applied a step with the new
// one. It takes the old one back at once.
TEST_F(StepMemberTest, KeepsItsStageWhileItLoads) {
  DecidedLayout moved = layout_of_three(2);
  moved.members[NodeId(2)] = 1;
  (void)member_.change(Epoch(2), Change::kHard);
  EXPECT_EQ(member_.install({.layout = moved}), StepActions{.load = 1});
  EXPECT_EQ(member_.report().stage, 0U);
  EXPECT_TRUE(member_.report().loads);
  StepMember back = member_;
  EXPECT_EQ(member_.loaded(77, {}).begin, attempt_of(2));
  const WholeLayers old{.layers = {.first = 0, .last = 2}, .step = kFirst, .root = 5};
  EXPECT_EQ(member_.report().whole, std::vector{old});
  for (StepMember* one : {&member_, &back}) {
    (void)one->change(Epoch(3), Change::kHard);
    EXPECT_EQ(one->install({.layout = layout_of_three(3), .microbatches = 1}).begin, attempt_of(3));
    EXPECT_TRUE(one->report().whole.empty());
    (void)one->back(attempt_of(3));
    (void)one->added(attempt_of(3));
    (void)one->all_back(NodeId(3), attempt_of(3));
    EXPECT_EQ(one->summed(attempt_of(3), {}).records->root, 5U);
  }
}

// Claim: what applies and moves in one decision applies first.
TEST_F(StepMemberTest, AppliesBeforeItMoves) {
  (void)to_records();
  (void)member_.change(Epoch(2), Change::kHard);
  DecidedLayout moved = layout_of_three(2, StepNumber(8));
  moved.members[NodeId(2)] = 1;
  EXPECT_TRUE(member_.install({.layout = moved, .apply = {{.attempt = attempt_of(1)}}}).update.has_value());
  EXPECT_EQ(member_.written(6), StepActions{.load = 1});
  EXPECT_EQ(member_.report().applied, StepNumber(8));
}

// Claim: a member leaves rather than hold other weights than the others: after a decision that it cannot
// follow, and after Work that failed.
TEST_F(StepMemberTest, Leaves) {
  StepMember fails = member_;
  EXPECT_TRUE(fails.failed().leave);
  EXPECT_EQ(fails.phase(), Phase::kLeft);
  (void)member_.change(Epoch(2), Change::kHard);
  EXPECT_TRUE(
      member_.install({.layout = layout_of_three(2, StepNumber(8)), .apply = {{.attempt = attempt_of(1)}}})
          .leave);
}

// Claim: with a new lineage all that a member had counts no more. A member without a stage in the layout, or
// without a step that is left, rests.
TEST_F(StepMemberTest, GoesBackOrRests) {
  (void)to_records();
  StepMember outside = member_;
  (void)member_.lost();
  EXPECT_TRUE(member_.rests_unasked());
  DecidedLayout back = layout_of_three(2, StepNumber(4));
  back.lineage = 1;
  back.goes_back = true;
  EXPECT_EQ(member_.install({.layout = back}), StepActions{.load = 0});
  EXPECT_FALSE(member_.report().stage || member_.report().sum);
  EXPECT_EQ(member_.loaded(1, {}).begin, (Attempt{.lineage = 1, .step = StepNumber(4), .epoch = Epoch(2)}));
  DecidedLayout without = layout_of_three(2);
  without.members.erase(NodeId(2));
  (void)outside.change(Epoch(2), Change::kHard);
  EXPECT_EQ(outside.install({.layout = without}), StepActions{});
  EXPECT_EQ(outside.phase(), Phase::kResting);
  (void)outside.change(Epoch(3), Change::kHard);
  EXPECT_EQ(outside.install({.layout = layout_of_three(3, StepNumber(20))}), StepActions{.load = 0})
      << "others have gone on without it";
  EXPECT_EQ(outside.loaded(1, {}), StepActions{}) << "no step is left";
  EXPECT_EQ(outside.change(Epoch(4), Change::kCanWait), StepActions{.report = Epoch(4)});
}

}  // namespace
}  // namespace gossamer::pipeline
