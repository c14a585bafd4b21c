// SPDX-License-Identifier: Apache-2.0
//
// Values that several messages have, as protobuf and back. Thread rule: pure functions.
#pragma once

#include <gossamer/pipeline.pb.h>

#include "engines/pipeline/step/layout.h"

namespace gossamer::pipeline {

[[nodiscard]] inline pipeline_wire::Attempt wire_attempt(const Attempt& attempt) {
  pipeline_wire::Attempt wire;
  wire.set_lineage(attempt.lineage);
  wire.set_step(attempt.step.value);
  wire.set_epoch(attempt.epoch.value);
  wire.set_tries(attempt.tries);
  return wire;
}

[[nodiscard]] inline Attempt read_attempt(const pipeline_wire::Attempt& wire) {
  return {.lineage = wire.lineage(),
          .step = StepNumber(wire.step()),
          .epoch = Epoch(wire.epoch()),
          .tries = wire.tries()};
}

}  // namespace gossamer::pipeline
