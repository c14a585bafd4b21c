// SPDX-License-Identifier: Apache-2.0
//
// MemberStep: what a member tells of a step that it has just applied. Thread rule: plain values.
#pragma once

#include <cstddef>

#include "base/ids.h"
#include "engines/run/sent_bytes.h"

namespace gossamer::engine {

struct MemberStep {
  Epoch epoch;  // of the view
  StepNumber step;
  std::size_t rank = 0;     // this member's
  std::size_t members = 0;  // that took part in it
  double loss = 0;          // this member's part: the sum over members is the loss of the step
  SentBytes sent;           // bytes that this life has sent so far
};

}  // namespace gossamer::engine
