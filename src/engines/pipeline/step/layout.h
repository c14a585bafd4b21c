// SPDX-License-Identifier: Apache-2.0
//
// What a step of several members is named by, and the layout in which it is done
// (docs/protocols/pipeline-step.md, "Words" and "Layout").
//
// Thread rule: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.h"

namespace gossamer::pipeline {

// What a step is named by while it is done. All that is exchanged for it carries the name.
struct Attempt {
  std::uint64_t lineage = 0;  // rises when the run goes back to a checkpoint
  StepNumber step;
  Epoch epoch;
  std::uint32_t tries = 0;  // 1: without a codec, as numbers of an attempt before were not finite
  auto operator<=>(const Attempt&) const = default;
};

// Whether one attempt is over when the other is under way. Views follow one another, and attempts in a view.
[[nodiscard]] inline bool comes_before(const Attempt& one, const Attempt& other) {
  return one.epoch != other.epoch ? one.epoch < other.epoch : one < other;
}

// The stage of each member.
using Stages = std::map<NodeId, std::uint32_t>;

// The layout that was decided last. All of it is in the coordinator's store.
struct DecidedLayout {
  Epoch epoch;
  std::uint64_t lineage = 0;
  StepNumber step;          // with which all went on
  std::uint32_t tries = 0;  // of that step
  bool goes_back = false;   // to a checkpoint
  bool exact = false;       // the run has no codec
  struct Stage {
    std::uint32_t first = 0;  // layers [first, last)
    std::uint32_t last = 0;
    auto operator<=>(const Stage&) const = default;
  };
  std::vector<Stage> stages = {};
  Stages members = {};
  auto operator<=>(const DecidedLayout&) const = default;
};

}  // namespace gossamer::pipeline
