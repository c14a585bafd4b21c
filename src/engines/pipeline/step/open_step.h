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

// The gradient of one stage, summed over all tokens of a step.
struct HeldSum {
  Attempt attempt;
  std::uint64_t hash = 0;
  double squared_norm = 0;
  bool operator==(const HeldSum&) const = default;
};

// A step that a holder has applied, with the sum of its own stage.
struct AppliedStep {
  HeldSum sum;
  double total = 0;      // squared norm of all stages
  bool skipped = false;  // weights stayed
  bool operator==(const AppliedStep&) const = default;
};

// Layers [first, last) of the model, with all steps below `step` of the lineage applied, in memory or on the
// member's disk.
struct WholeLayers {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint64_t lineage = 0;
  StepNumber step;
  std::uint64_t root = 0;
  bool operator==(const WholeLayers&) const = default;
};

// What a member says at rest.
struct RestReport {
  Epoch installed;                          // the layout that it has; it knows no later one
  std::uint64_t lineage = 0;                // of that layout
  std::optional<std::uint32_t> stage = {};  // that it has whole; nothing: none yet
  bool loads = false;                       // the layout gave it a stage or a state that it has not whole
  StepNumber applied;                       // with a stage: all steps below are applied
  std::optional<AppliedStep> last = {};     // applied last in this lineage, if any
  std::optional<HeldSum> sum = {};          // of the step that comes next
  std::vector<WholeLayers> whole = {};      // beside its own stage
};

// The layout that was decided last. All of it is in the coordinator's store.
struct DecidedLayout {
  Epoch epoch;
  std::uint64_t lineage = 0;
  StepNumber step;         // with which all went on
  bool goes_back = false;  // to a checkpoint
  struct Stage {
    std::uint32_t first = 0;  // layers [first, last)
    std::uint32_t last = 0;
  };
  std::vector<Stage> stages = {};
  std::map<NodeId, std::uint32_t> members = {};  // and the stage of each
};

struct OpenStep {
  enum class Then {
    kBegin,      // `step` begins, anew or for the first time
    kApply,      // all holders that have not, apply the sum of `attempt`, and then `step` begins
    kNotFinite,  // likewise, but the norm is not finite: nobody may apply it
    kGoBack,     // all go back to a checkpoint
    kStop,       // peers hold different bits, and nobody knows which are right
  };
  Then then = Then::kBegin;
  StepNumber step;
  std::optional<Attempt> attempt = {};
  double total = 0;                            // with an attempt: the squared norm of all stages
  bool skipped = false;                        // the step of the attempt is skipped, not applied
  std::map<std::uint32_t, NodeId> taken = {};  // stages without a holder, and the members that have them
  std::set<std::uint32_t> lost = {};           // stages for which all go back
  bool operator==(const OpenStep&) const = default;
};

// The table of the page, row by row. A member to which the layout gives no stage is no holder: the others may
// have gone on without it. Requires that contradicting() names nobody.
[[nodiscard]] OpenStep judge_open_step(const std::map<NodeId, RestReport>& reports,
                                       const DecidedLayout& last);

// Members whose reports cannot be true beside those of the others with the same layout:
// - another lineage than most, or more than one step away from most;
// - a sum of another step than the next one;
// - for the same attempt another hash or norm than most of its peers have.
// Where as many say one thing as another, nobody is named.
[[nodiscard]] std::set<NodeId> contradicting(const std::map<NodeId, RestReport>& reports);

}  // namespace gossamer::pipeline
