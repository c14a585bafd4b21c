// SPDX-License-Identifier: Apache-2.0
//
// StepDefect: one rule of a step left out, so that a model or a simulation can show that it would be missed.
// Never set outside of tests and simulations. Thread rule: plain value.
#pragma once

#include <cstdint>

namespace gossamer::pipeline {

enum class StepDefect : std::uint8_t {
  kNone,
  kAllBackOfOne,      // a member joins its sum once one member of the first stage has all back
  kOneNormAStage,     // a record of each stage is enough to apply
  kLateNorm,          // records count after the report, too
  kApplyNotReported,  // a report does not say that a step was applied
  kTensorOfOldView,   // a microbatch of an earlier attempt counts
  kSumOfOldAttempt,   // a sum of an earlier attempt counts
  kNormForgotten,     // a member that rests forgets its sum
  kMovedTooEarly,     // a member that gets another stage drops the one that it had
};

}  // namespace gossamer::pipeline
