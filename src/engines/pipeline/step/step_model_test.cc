// SPDX-License-Identifier: Apache-2.0
//
// All histories of one step: deaths at any moment, messages that take any time, views one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engines/pipeline/step/open_step.h"

namespace gossamer::pipeline {
namespace {

using Then = OpenStep::Then;
constexpr StepNumber kStep{7};

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
    const OpenStep verdict = judge_open_step(said, model_layout(state), 0);
    ++verdicts_[verdict.then];
    if (!verdict.lost.empty()) return;
    if (verdict.then != Then::kBegin && verdict.then != Then::kApply)
      wrong_ = "honest members contradict each other";
    if (verdict.then == Then::kBegin && verdict.step > kStep) return;  // all have applied it
    next.apply = verdict.then == Then::kApply ? static_cast<std::uint8_t>(verdict.attempt->epoch.value) : 0;
    if (anybody_applied && next.apply == 0) wrong_ = "a step begins again that somebody has applied";
    see(next);
  }

  [[nodiscard]] DecidedLayout model_layout(const State& state) const {
    DecidedLayout last{.epoch = Epoch(state.view + 1U), .step = kStep};
    for (std::uint32_t stage = 0; stage <= *std::ranges::max_element(stages_); ++stage)
      last.stages.push_back({.first = stage, .last = stage + 1});
    for (std::size_t i = 0; i < stages_.size(); ++i) last.members[NodeId(i)] = stages_[i];
    return last;
  }

  [[nodiscard]] RestReport report(const State& state, std::size_t i) const {
    const Member& one = state.members[i];
    RestReport said{.installed = Epoch(one.view + 1U), .stage = stages_[i], .applied = kStep};
    const StepRecord record{.hash = 10 + stages_[i], .squared_norm = 1};
    const auto formed_in = [](std::uint8_t view) { return Attempt{.step = kStep, .epoch = Epoch(view)}; };
    if (one.applied != 0) {
      if (without_ == Without::kTrueReport) return said;
      ++said.applied;
      const double total = 1 + *std::ranges::max_element(stages_);
      said.last = {.attempt = formed_in(one.applied), .record = record, .total = total};
    } else if (one.sum != 0) {
      said.sum = {.attempt = formed_in(one.sum), .record = record};
    }
    return said;
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
TEST(StepModel, EveryMomentOfADeath) {
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
TEST(StepModel, EachRuleIsNeeded) {
  using Without = Model::Without;
  for (const Without without : {Without::kAllRecords, Without::kFinalRest, Without::kTrueReport}) {
    Model model({0, 0, 1}, {.deaths = 2, .changes = 1}, without);
    EXPECT_NE(model.explore(), "") << static_cast<int>(without);
  }
}

}  // namespace
}  // namespace gossamer::pipeline
