// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gossamer::pipeline {
namespace {

using Then = OpenStep::Then;
constexpr StepNumber kOpen{7};

Attempt attempt(std::uint64_t epoch, StepNumber step = kOpen) { return {.step = step, .epoch = Epoch(epoch)}; }

RestReport computing(std::uint32_t stage) { return {.stage = stage, .applied = kOpen}; }

RestReport has_sum(std::uint32_t stage, std::uint64_t epoch, double squared_norm = 1) {
  RestReport report = computing(stage);
  report.sum = {.attempt = attempt(epoch), .hash = 10 + stage, .squared_norm = squared_norm, .tokens = 100};
  return report;
}

RestReport has_applied(std::uint32_t stage, std::uint64_t epoch) {
  RestReport report = computing(stage);
  report.applied = StepNumber(kOpen.value + 1);
  report.last = {.attempt = attempt(epoch), .squared_norm = 9, .tokens = 100};
  return report;
}

std::map<NodeId, RestReport> reports(std::vector<RestReport> all) {
  std::map<NodeId, RestReport> by_node;
  for (std::size_t i = 0; i < all.size(); ++i) by_node[NodeId(2 + i)] = std::move(all[i]);
  return by_node;
}

// Claim: the rows of the page's table. The first that fits decides.
TEST(OpenStep, FollowsTheTable) {
  const OpenStep again{.then = Then::kBegin, .step = kOpen};
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1)}), 2), again) << "all have applied the same";
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), computing(1)}), 2), again) << "one has no sum";
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), has_sum(0, 4), has_sum(1, 4)}), 2), again)
      << "sums of two attempts";

  const OpenStep all_have = judge_open_step(reports({has_sum(0, 3, 4), has_sum(0, 3, 4), has_sum(1, 3, 5)}), 2);
  EXPECT_EQ(all_have.then, Then::kApply);
  EXPECT_EQ(all_have.step, StepNumber(8));
  EXPECT_EQ(all_have.totals, (StepTotals{.attempt = attempt(3), .squared_norm = 9, .tokens = 100}))
      << "one squared norm for each stage";

  const OpenStep one_has = judge_open_step(reports({has_sum(0, 3, 4), has_applied(1, 3)}), 2);
  EXPECT_EQ(one_has.then, Then::kApply);
  EXPECT_EQ(one_has.totals, has_applied(1, 3).last) << "the norm of the one that applied";
}

// Claim: a member without a stage has no part in the verdict.
TEST(OpenStep, MembersWithoutAStage) {
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), RestReport{}}), 1).then, Then::kApply);
}

// Claim: a stage without a survivor goes to a member that has it whole as of the open step, if nobody has
// applied that step. Otherwise all go back, and the verdict names the stages for which they do.
TEST(OpenStep, LostStages) {
  RestReport keeps = has_sum(0, 3);
  keeps.whole = {{.stage = 1, .step = kOpen}, {.stage = 2, .step = StepNumber(6)}};
  const OpenStep taken = judge_open_step(reports({has_sum(0, 3), keeps}), 2);
  EXPECT_EQ(taken, (OpenStep{.then = Then::kBegin, .step = kOpen, .taken = {{1, NodeId(3)}}}));

  const OpenStep lost = judge_open_step(reports({has_sum(0, 3), keeps}), 3);
  EXPECT_EQ(lost, (OpenStep{.then = Then::kGoBack, .step = kOpen, .lost = {2}}));

  keeps.stage = 2;
  const OpenStep applied = judge_open_step(reports({has_applied(0, 3), keeps}), 3);
  EXPECT_EQ(applied.then, Then::kGoBack) << "the copy lacks a step that another member has applied";
  EXPECT_EQ(applied.lost, std::set<std::uint32_t>{1});
}

// Claim: reports that cannot be true beside those of more than half of the others are named.
TEST(OpenStep, NamesContradictions) {
  RestReport other_lineage = computing(0);
  other_lineage.lineage = 1;
  RestReport far = computing(0);
  far.applied = StepNumber(9);
  RestReport other_hash = has_sum(0, 3);
  other_hash.sum->hash = 99;
  RestReport other_step = has_sum(0, 3);
  other_step.sum->attempt.step = StepNumber(6);
  for (const RestReport& wrong : {other_lineage, far, other_hash, other_step})
    EXPECT_EQ(contradicting(reports({has_sum(0, 3), wrong, has_sum(0, 3), has_sum(1, 3)})), std::set{NodeId(3)});
  EXPECT_TRUE(contradicting(reports({has_sum(0, 3), has_applied(0, 3), has_sum(1, 3)})).empty());
  EXPECT_TRUE(contradicting(reports({has_sum(0, 3), other_hash})).empty()) << "word against word";
}

// A model of one step: members may die at any moment, messages may take any time, views follow one another.
// It takes the judge's verdicts, and looks whether they contradict what members have done.
class Model {
 public:
  static constexpr std::size_t kMostMembers = 4;
  static constexpr std::size_t kMostViews = 5;
  enum Phase : std::uint8_t { kComputing, kJoined, kHasSum, kApplied };
  struct Member {
    std::uint8_t lives = 1;
    std::uint8_t view = 0;     // that it has installed
    std::uint8_t rested = 0;   // it has reported for the change to this view; at most `view`: it works
    std::uint8_t phase = kComputing;
    std::uint8_t sum = 0;      // 1 + the view in which its sum was formed; 0: it has none
    std::uint8_t applied = 0;  // likewise
    std::uint8_t parts = 0;    // of these members have come in this view
    std::uint8_t records = 0;  // likewise
  };
  struct State {
    std::array<Member, kMostMembers> members = {};
    std::array<std::uint8_t, kMostViews> views = {};  // members of each
    std::uint8_t view = 0;                            // the last that was decided
    std::uint8_t apply = 0;                           // its decision; 0: the step begins
    std::uint8_t changing = 0;
    std::uint8_t deaths = 0;
    std::uint8_t changes = 0;  // that no death was the cause of
  };
  struct Limits {
    std::uint8_t deaths = 2;
    std::uint8_t changes = 1;
  };

  Model(std::vector<std::uint32_t> stages, Limits limits) : stages_(std::move(stages)), limits_(limits) {}

  // Looks at every state that can be. Returns what must not be, in words.
  std::string explore() {
    State first;
    first.views[0] = static_cast<std::uint8_t>((1U << stages_.size()) - 1U);
    see(first);
    while (!open_.empty() && wrong_.empty()) {
      const State state = open_.front();
      open_.pop_front();
      for (std::size_t i = 0; i < stages_.size(); ++i) {
        if (state.members[i].lives != 0) move(state, i);
      }
      change(state);
    }
    return wrong_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }
  // How often each verdict was given.
  [[nodiscard]] const std::map<Then, std::size_t>& verdicts() const { return verdicts_; }

 private:
  [[nodiscard]] static bool in(std::uint8_t mask, std::size_t i) { return (mask >> i & 1U) != 0; }
  [[nodiscard]] static std::uint8_t bit(std::size_t i) { return static_cast<std::uint8_t>(1U << i); }

  void see(const State& state) {
    std::string key(sizeof(State), '\0');
    std::memcpy(key.data(), &state, sizeof(State));
    if (seen_.insert(std::move(key)).second) open_.push_back(state);
  }

  // What one living member may do, and what may come to it.
  void move(const State& state, std::size_t i) {
    const Member& one = state.members[i];
    if (state.deaths < limits_.deaths) {
      State next = state;
      next.members[i].lives = 0;
      ++next.deaths;
      see(next);
    }
    if (state.changing != 0 && one.rested <= state.view) {
      State next = state;
      next.members[i].rested = state.view + 1;
      see(next);
    }
    if (one.view < state.view && one.rested <= state.view) install(state, i);
    if (one.rested > one.view) return;
    if (one.phase == kComputing) {
      State next = state;
      next.members[i].phase = kJoined;
      settle(next, i);
    }
    for (std::size_t j = 0; j < stages_.size(); ++j) take(state, i, j);
  }

  // A message of member j comes to member i, if j has sent it: dead members may have sent some.
  void take(const State& state, std::size_t i, std::size_t j) {
    const Member& from = state.members[j];
    if (j == i || from.view != state.members[i].view || !in(state.views[from.view], j)) return;
    if (stages_[j] == stages_[i] && from.phase >= kJoined && !in(state.members[i].parts, j)) {
      State next = state;
      next.members[i].parts |= bit(j);
      settle(next, i);
    }
    if (from.phase >= kHasSum && !in(state.members[i].records, j)) {
      State next = state;
      next.members[i].records |= bit(j);
      settle(next, i);
    }
  }

  // What follows at once from what member i has.
  void settle(State state, std::size_t i) {
    Member& one = state.members[i];
    std::uint8_t peers = 0;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      if (j != i && stages_[j] == stages_[i]) peers |= bit(j) & state.views[one.view];
    }
    if (one.phase == kJoined && (peers & ~one.parts) == 0) {
      one.phase = kHasSum;
      one.sum = one.view + 1;
    }
    if (one.phase == kHasSum && (state.views[one.view] & ~(one.records | bit(i))) == 0) {
      one.phase = kApplied;
      one.applied = one.view + 1;
    }
    for (const Member& other : state.members) {
      if (one.lives != 0 && other.lives != 0 && one.applied != 0 && other.applied != 0 &&
          one.applied != other.applied)
        wrong_ = "two living members have applied different attempts";
    }
    see(state);
  }

  // The coordinator begins a change, or decides once all that live rest.
  void change(const State& state) {
    const std::uint8_t view = state.views[state.view];
    bool somebody_died = false;
    bool all_rest = true;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!in(view, i)) continue;
      somebody_died = somebody_died || state.members[i].lives == 0;
      all_rest = all_rest && (state.members[i].lives == 0 || state.members[i].rested > state.view);
    }
    State next = state;
    if (state.changing == 0 && (somebody_died || state.changes < limits_.changes)) {
      next.changing = 1;
      if (!somebody_died) ++next.changes;
      see(next);
    } else if (state.changing != 0 && all_rest) {
      decide(state);
    }
  }

  void decide(const State& state) {
    std::map<NodeId, RestReport> said;
    State next = state;
    next.changing = 0;
    ++next.view;
    bool anybody_applied = false;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const Member& one = state.members[i];
      if (!in(state.views[state.view], i)) continue;
      anybody_applied = anybody_applied || one.applied != 0;
      if (one.lives == 0) continue;
      next.views[next.view] |= bit(i);
      said[NodeId(i)] = one.applied != 0 ? has_applied(stages_[i], one.applied)
                                             : one.sum != 0   ? has_sum(stages_[i], one.sum)
                                                              : computing(stages_[i]);
    }
    if (said.empty()) return;
    const OpenStep verdict = judge_open_step(said, 1 + *std::ranges::max_element(stages_));
    ++verdicts_[verdict.then];
    if (verdict.then == Then::kGoBack) return;
    if (verdict.then == Then::kBegin && verdict.step > kOpen) return;  // all have applied it
    next.apply = verdict.totals ? static_cast<std::uint8_t>(verdict.totals->attempt.epoch.value) : 0;
    if (anybody_applied && next.apply == 0) wrong_ = "a step begins again that somebody has applied";
    see(next);
  }

  void install(const State& state, std::size_t i) {
    State next = state;
    Member& one = next.members[i];
    if (state.apply == 0 && one.applied != 0) wrong_ = "a member is to begin a step that it has applied";
    if (state.apply != 0 && one.applied != state.apply && one.sum != state.apply)
      wrong_ = "a member is to apply a sum that it does not have";
    one.view = one.rested = state.view;
    one.parts = one.records = 0;
    one.phase = state.apply != 0 ? kApplied : kComputing;
    one.applied = state.apply;
    if (state.apply == 0) one.sum = 0;
    see(next);
  }

  const std::vector<std::uint32_t> stages_;
  const Limits limits_;
  std::unordered_set<std::string> seen_;
  std::deque<State> open_;
  std::map<Then, std::size_t> verdicts_;
  std::string wrong_;
};

// Claim: whenever members die, and however long messages take, a step is applied by all that live or by none
// of them. Each verdict is given somewhere.
TEST(OpenStep, EveryMomentOfADeath) {
  const std::vector<std::vector<std::uint32_t>> fleets{{0, 0}, {0, 1}, {0, 0, 1}, {0, 0, 1, 1}, {0, 0, 0, 1}};
  for (const std::vector<std::uint32_t>& stages : fleets) {
    Model model(stages, {.deaths = stages.size() < 4 ? std::uint8_t{2} : std::uint8_t{1}, .changes = 1});
    EXPECT_EQ(model.explore(), "") << stages.size() << " members";
    EXPECT_GT(model.verdicts().at(Then::kApply), 0U);
    EXPECT_GT(model.verdicts().at(Then::kBegin), 0U);
    RecordProperty("states_of_" + std::to_string(stages.size()), static_cast<int>(model.states()));
  }
}

}  // namespace
}  // namespace gossamer::pipeline
