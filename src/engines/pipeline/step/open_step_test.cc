// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/open_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
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
  report.sum = {.attempt = attempt(epoch), .hash = 10 + stage, .squared_norm = squared_norm};
  return report;
}

RestReport has_applied(std::uint32_t stage, std::uint64_t epoch, double squared_norm, double total) {
  RestReport report = computing(stage);
  report.applied = StepNumber(kOpen.value + 1);
  report.last = {.sum = {.attempt = attempt(epoch), .hash = 10 + stage, .squared_norm = squared_norm},
                 .total = total};
  return report;
}

std::map<NodeId, RestReport> reports(std::vector<RestReport> all) {
  std::map<NodeId, RestReport> by_node;
  for (std::size_t i = 0; i < all.size(); ++i) by_node[NodeId(2 + i)] = std::move(all[i]);
  return by_node;
}

OpenStep judge(std::vector<RestReport> all, std::uint32_t stages) {
  return judge_open_step(reports(std::move(all)), layout(stages));
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
  EXPECT_EQ(judge_open_step(reports({has_sum(0, 3), has_sum(1, 3), behind}), without).then, Then::kApply);
  RestReport invented = has_sum(9, 3);
  EXPECT_EQ(judge({has_sum(0, 3), has_sum(1, 3), invented}, 2).then, Then::kApply);
}

// Claim: a norm that is not finite is applied by nobody.
TEST(OpenStep, NotFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double norm : {infinite, none})
    EXPECT_EQ(judge({has_sum(0, 3, norm), has_sum(0, 3, norm), has_sum(1, 3)}, 2).then, Then::kNotFinite)
        << norm;
  const RestReport nan = has_sum(0, 3, none);
  EXPECT_TRUE(contradicting(reports({nan, nan, nan})).empty());
  EXPECT_EQ(contradicting(reports({nan, has_sum(0, 3), has_sum(0, 3)})), std::set{NodeId(2)});
}

// Claim: where the others' sums do not give what one says that it has applied, all go back. The same holds if
// one has applied a step whose sum another one lacks. Peers with different sums stop the run.
TEST(OpenStep, WhatCannotBe) {
  EXPECT_EQ(judge({has_sum(0, 3, 4), has_applied(1, 3, 5, 100)}, 2).then, Then::kGoBack);
  EXPECT_EQ(judge({computing(0), has_applied(1, 3, 5, 9)}, 2).then, Then::kGoBack);
  RestReport other_hash = has_sum(0, 3);
  other_hash.sum->hash = 99;
  EXPECT_EQ(judge({has_sum(0, 3), other_hash, has_sum(1, 3)}, 2).then, Then::kStop);
  EXPECT_EQ(judge({has_sum(0, 3), has_sum(0, 3, 2), has_sum(1, 3)}, 2).then, Then::kStop);
}

// Claim: a stage without a holder goes to a member that has it whole as of the open step, if nobody has
// applied that step. Otherwise all go back, and the verdict names the stages for which they do.
TEST(OpenStep, LostStages) {
  RestReport keeps = has_sum(0, 3);
  keeps.whole = {{.first = 2, .last = 4, .step = kOpen}, {.first = 4, .last = 6, .step = StepNumber(6)}};
  EXPECT_EQ(judge({has_sum(0, 3), keeps}, 2),
            (OpenStep{.then = Then::kBegin, .step = kOpen, .taken = {{1, NodeId(3)}}}));
  EXPECT_EQ(judge({has_sum(0, 3), keeps}, 3), (OpenStep{.then = Then::kGoBack, .step = kOpen, .lost = {2}}));
  EXPECT_EQ(judge({keeps}, 2).then, Then::kGoBack) << "it alone has its own stage";
  EXPECT_EQ(judge({has_applied(0, 3, 1, 2), keeps}, 2).then, Then::kGoBack) << "the copy lacks a step";
  RestReport of_before = keeps;
  for (WholeLayers& one : of_before.whole) one.lineage = 1;
  EXPECT_EQ(judge({has_sum(0, 3), of_before}, 2).then, Then::kGoBack) << "of another lineage";
  RestReport both = keeps;
  both.whole = {{.first = 2, .last = 4, .step = kOpen}, {.first = 4, .last = 6, .step = kOpen}};
  EXPECT_EQ(judge({has_sum(0, 3), both}, 3).then, Then::kGoBack) << "one member takes one stage";
  EXPECT_EQ(judge({RestReport{}}, 2).then, Then::kGoBack) << "no holder at all";
  RestReport has_first = computing(1);
  has_first.whole = {{.first = 0, .last = 2, .step = kOpen}};
  RestReport has_third = computing(1);
  has_third.whole = {{.first = 4, .last = 6, .step = kOpen}};
  EXPECT_EQ(judge({has_first, has_third}, 3).then, Then::kGoBack) << "nobody would be left with the second";
  RestReport loading = computing(1);
  loading.stage.reset();
  loading.loads = true;
  EXPECT_EQ(judge({has_sum(0, 3), loading}, 2).lost, std::set<std::uint32_t>{1}) << "it has not got it yet";
}

// Claim: while one member of a layout that goes back has not loaded the checkpoint, all go back to that one.
TEST(OpenStep, GoingBackGoesOn) {
  DecidedLayout back = layout(2);
  back.goes_back = true;
  RestReport before = computing(1);
  before.installed = Epoch(2);
  before.applied = StepNumber(900);
  EXPECT_EQ(judge_open_step(reports({computing(0), before}), back).then, Then::kGoBack);
  EXPECT_TRUE(contradicting(reports({computing(0), before, before})).empty()) << "of different layouts";
  RestReport loads = computing(1);
  loads.loads = true;
  EXPECT_EQ(judge_open_step(reports({computing(0), loads}), back).then, Then::kGoBack);
  back.members.erase(NodeId(4));
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1), RestReport{}}), back).then, Then::kBegin)
      << "a member that joins";
  EXPECT_EQ(judge_open_step(reports({computing(0), computing(1)}), back).then, Then::kBegin);
}

// Claim: reports that cannot be true beside those of more than half of the others are named.
TEST(OpenStep, NamesContradictions) {
  RestReport other_lineage = computing(0);
  other_lineage.lineage = 1;
  RestReport far = computing(0);
  far.applied = StepNumber(9);
  RestReport other_hash = has_sum(0, 3);
  other_hash.sum->hash = 99;
  RestReport other_norm = has_sum(0, 3, 2);
  RestReport other_step = has_sum(0, 3);
  other_step.sum->attempt.step = StepNumber(6);
  RestReport applied_other = has_applied(0, 3, 2, 9);
  for (const RestReport& wrong : {other_lineage, far, other_hash, other_norm, other_step, applied_other}) {
    EXPECT_EQ(contradicting(reports({has_sum(0, 3), wrong, has_sum(0, 3), has_sum(1, 3)})),
              std::set{NodeId(3)});
  }
  EXPECT_TRUE(contradicting(reports({has_sum(0, 3), has_applied(0, 3, 1, 2), has_sum(1, 3)})).empty());
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
    std::uint8_t view = 0;    // that it has installed
    std::uint8_t rested = 0;  // it has reported for the change to this view; at most `view`: it works
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
  // A rule of the page that is left out.
  enum class Without {
    kNothing,
    kAllRecords,  // a record of each stage is enough to apply
    kFinalRest,   // a member that has reported takes records, and applies
    kTrueReport,  // what is applied is reported as a sum that is held no more
  };

  Model(std::vector<std::uint32_t> stages, Limits limits, Without without = Without::kNothing)
      : stages_(std::move(stages)), limits_(limits), without_(without) {}

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
  static void add(std::uint8_t& mask, std::size_t i) { mask = static_cast<std::uint8_t>(mask | bit(i)); }

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
      next.members[i].rested = static_cast<std::uint8_t>(state.view + 1);
      see(next);
    }
    if (one.view < state.view && one.rested <= state.view) install(state, i);
    if (one.rested > one.view && without_ != Without::kFinalRest) return;
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
    if (j == i || state.members[i].phase == kApplied || from.view != state.members[i].view ||
        !in(state.views[from.view], j))
      return;
    if (stages_[j] == stages_[i] && from.phase >= kJoined && !in(state.members[i].parts, j)) {
      State next = state;
      add(next.members[i].parts, j);
      settle(next, i);
    }
    if (from.phase >= kHasSum && !in(state.members[i].records, j)) {
      State next = state;
      add(next.members[i].records, j);
      settle(next, i);
    }
  }

  [[nodiscard]] bool has_records(const State& state, std::size_t i) const {
    const auto here = static_cast<std::uint8_t>(state.members[i].records | bit(i));
    const std::uint8_t view = state.views[state.members[i].view];
    if (without_ != Without::kAllRecords) return (view & ~here) == 0;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      bool has_stage = !in(view, j);
      for (std::size_t k = 0; k < stages_.size(); ++k)
        has_stage = has_stage || (in(here, k) && stages_[k] == stages_[j]);
      if (!has_stage) return false;
    }
    return true;
  }

  // What follows at once from what member i has.
  void settle(State state, std::size_t i) {
    Member& one = state.members[i];
    unsigned peers = 0;
    for (std::size_t j = 0; j < stages_.size(); ++j) {
      if (j != i && stages_[j] == stages_[i]) peers |= bit(j) & state.views[one.view];
    }
    if (one.phase == kJoined && (peers & ~one.parts) == 0) {
      one.phase = kHasSum;
      one.sum = static_cast<std::uint8_t>(one.view + 1);
    }
    if (one.phase == kHasSum && has_records(state, i)) {
      one.phase = kApplied;
      one.applied = static_cast<std::uint8_t>(one.view + 1);
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
      add(next.views[next.view], i);
      said[NodeId(i)] = report(state, i);
    }
    if (said.empty()) return;
    const OpenStep verdict = judge_open_step(said, layout(1 + *std::ranges::max_element(stages_)));
    ++verdicts_[verdict.then];
    if (!verdict.lost.empty()) return;
    if (verdict.then != Then::kBegin && verdict.then != Then::kApply)
      wrong_ = "honest members contradict each other";
    if (verdict.then == Then::kBegin && verdict.step > kOpen) return;  // all have applied it
    next.apply = verdict.then == Then::kApply ? static_cast<std::uint8_t>(verdict.attempt->epoch.value) : 0;
    if (anybody_applied && next.apply == 0) wrong_ = "a step begins again that somebody has applied";
    see(next);
  }

  [[nodiscard]] RestReport report(const State& state, std::size_t i) const {
    const Member& one = state.members[i];
    if (one.applied != 0 && without_ == Without::kTrueReport) return computing(stages_[i]);
    if (one.applied != 0)
      return has_applied(stages_[i], one.applied, 1, 1 + *std::ranges::max_element(stages_));
    return one.sum != 0 ? has_sum(stages_[i], one.sum) : computing(stages_[i]);
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
  const Without without_;
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
    EXPECT_EQ(model.verdicts().contains(Then::kGoBack), std::ranges::count(stages, 1U) == 1)
        << "one death is enough to lose the second stage";
    RecordProperty("states_of_" + std::to_string(stages.size()), static_cast<int>(model.states()));
  }
}

// Claim: each rule of the page is needed. Without it the model finds a step that is applied by some and begun
// again by others.
TEST(OpenStep, EachRuleIsNeeded) {
  using Without = Model::Without;
  for (const Without without : {Without::kAllRecords, Without::kFinalRest, Without::kTrueReport}) {
    Model model({0, 0, 1}, {.deaths = 2, .changes = 1}, without);
    EXPECT_NE(model.explore(), "") << static_cast<int>(without);
  }
}

}  // namespace
}  // namespace gossamer::pipeline
