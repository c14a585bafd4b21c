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
#include "engines/pipeline/step/layout.h"
#include "engines/pipeline/step/majority.h"
#include "engines/pipeline/step/record.h"

namespace gossamer::pipeline {

// The gradient of one stage, summed over all tokens of a step.
struct HeldSum {
  Attempt attempt;
  StepRecord record;     // its member's own
  bool refused = false;  // the records of all members were here, and did not fit
  auto operator<=>(const HeldSum&) const = default;
};

// A step that a holder has applied.
struct AppliedStep {
  Attempt attempt;
  StepRecord record;     // its member's own
  double total = 0;      // squared norm of all stages
  bool skipped = false;  // weights stayed
  auto operator<=>(const AppliedStep&) const = default;
};

// Layers [first, last) of the model, with all steps below `step` of the lineage applied, in memory or on the
// member's disk.
struct WholeLayers {
  DecidedLayout::Stage layers;
  std::uint64_t lineage = 0;
  StepNumber step;
  std::uint64_t root = 0;
  auto operator<=>(const WholeLayers&) const = default;
};

// The roots of stages before a step, as its records have named them.
struct NamedRoots {
  StepNumber step;
  std::map<std::uint32_t, std::uint64_t> by_stage = {};
  auto operator<=>(const NamedRoots&) const = default;
};

// What a member says at rest.
struct RestReport {
  Epoch installed;            // the layout that it has; it knows no later one
  std::uint64_t lineage = 0;  // of that layout
  // That it has whole; nothing: none yet. While it loads another stage, this is the one that it had.
  std::optional<std::uint32_t> stage = {};
  bool loads = false;                    // the layout gave it a stage or a state that it has not whole
  StepNumber applied = {};               // with a stage: all steps below are applied
  std::optional<AppliedStep> last = {};  // applied last in this lineage, if any
  std::optional<HeldSum> sum = {};       // of the step that comes next
  std::optional<NamedRoots> roots = {};  // by the records of a step that it has seen last
  std::vector<WholeLayers> whole = {};   // beside its own stage
  auto operator<=>(const RestReport&) const = default;
};

struct OpenStep {
  enum class Then {
    kBegin,      // `step` begins, anew or for the first time
    kApply,      // all holders that have not, apply the sum of `attempt`, and then `step` begins
    kNotFinite,  // likewise, but numbers are not finite without a codec either: nobody may apply it
    kGoBack,     // all go back to a checkpoint
    kDiffer,     // `named` differ from most: they are fenced, and the others report again
    kDispute,    // `named` differ, and nobody knows which are right
  };
  Then then = Then::kBegin;
  StepNumber step;
  std::uint32_t tries = 0;  // of `step`, if it begins
  std::optional<Attempt> attempt = {};
  double total = 0;                            // with an attempt: the squared norm of all stages
  bool skipped = false;                        // the step of the attempt is skipped, not applied
  std::map<std::uint32_t, NodeId> taken = {};  // stages without a holder, and the members that have them
  std::set<std::uint32_t> lost = {};           // stages for which all go back
  std::set<NodeId> named = {};
  bool operator==(const OpenStep&) const = default;
};

// The table of the page, row by row. `tokens`: of the open step. Requires that contradicting() names nobody.
[[nodiscard]] OpenStep judge_open_step(const std::map<NodeId, RestReport>& reports, const DecidedLayout& last,
                                       std::uint64_t tokens);

// Members whose reports cannot be true beside those of the others with the same layout. The four cases stand
// in the page, "A report contradicts".
[[nodiscard]] Differing contradicting(const std::map<NodeId, RestReport>& reports, const DecidedLayout& last);

}  // namespace gossamer::pipeline
