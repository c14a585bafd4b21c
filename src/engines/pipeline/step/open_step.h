// SPDX-License-Identifier: Apache-2.0
//
// judge_open_step(): what becomes of the step that was under way when all members came to rest
// (docs/protocols/pipeline-step.md, "What becomes of the open step"). It rests on the reports alone, so each
// coordinator decides the same.
//
// Thread rule: plain values, pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"

namespace gossamer::pipeline {

// What a step is named by while it is done. All that is exchanged for it carries the name.
struct Attempt {
  std::uint64_t lineage = 0;  // rises when the run goes back to a checkpoint
  StepNumber step;
  Epoch epoch;
  std::uint32_t tries = 0;  // before this one, in the same view
  auto operator<=>(const Attempt&) const = default;
};

// The gradient of a stage, summed over all tokens of the step.
struct HeldSum {
  Attempt attempt;
  std::uint64_t hash = 0;
  double squared_norm = 0;   // of this stage
  std::uint64_t tokens = 0;  // of the step
  bool operator==(const HeldSum&) const = default;
};

// What every stage needs for the update of a step beside its own sum.
struct StepTotals {
  Attempt attempt;
  double squared_norm = 0;  // of all stages
  std::uint64_t tokens = 0;
  bool operator==(const StepTotals&) const = default;
};

// A stage with all steps below `step` applied, in memory or on the member's disk.
struct WholeStage {
  std::uint32_t stage = 0;
  StepNumber step;
  bool operator==(const WholeStage&) const = default;
};

// What a member says at rest.
struct RestReport {
  std::uint64_t lineage = 0;
  std::optional<std::uint32_t> stage = {};  // nothing: it held none in the last layout
  StepNumber applied;                       // with a stage: all steps below are applied
  std::optional<StepTotals> last = {};      // of the step applied last, if it was applied in this life
  std::optional<HeldSum> sum = {};          // of the step that comes next
  std::vector<WholeStage> whole = {};       // beside its own stage
};

struct OpenStep {
  enum class Then {
    kBegin,   // `step` begins, anew or for the first time
    kApply,   // all that have not, apply the sum of `totals`, and then `step` begins
    kGoBack,  // a stage is lost: all go back to a checkpoint
  };
  Then then = Then::kBegin;
  StepNumber step;
  std::optional<StepTotals> totals = {};
  std::map<std::uint32_t, NodeId> taken = {};  // lost stages, and the members that have them whole
  std::set<std::uint32_t> lost = {};           // stages for which all go back
  bool operator==(const OpenStep&) const = default;
};

// `stages`: of the last layout. Requires one report of a member with a stage, and reports without
// contradicting() ones.
[[nodiscard]] OpenStep judge_open_step(const std::map<NodeId, RestReport>& reports, std::uint32_t stages);

// Members whose reports cannot be true beside those of the others:
// - a lineage that is not that of most;
// - a step more than one away from that of most, or a sum of another step than the next one;
// - another hash than most of its peers have for the same attempt.
// Where as many say one thing as another, nobody is named.
[[nodiscard]] std::set<NodeId> contradicting(const std::map<NodeId, RestReport>& reports);

}  // namespace gossamer::pipeline
