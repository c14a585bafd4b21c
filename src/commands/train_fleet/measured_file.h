// SPDX-License-Identifier: Apache-2.0
//
// The file in which the lead of a run keeps what it has measured with its members
// (docs/protocols/sparse-step.md, "Evaluation"). It lies beside their parts, and goes with them. A process
// that makes the model of these parts need not measure it again.
//
//   DIRECTORY/measured.json   {"step", "seconds", "metrics": {...}, "text", "calibration": {"log", "rest",
//   "offset"}}
//
// Thread rule: plain functions.
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "commands/train/measured.h"
#include "host/api/disk.h"

namespace gossamer::commands {

// The step is that of the trained network: all before it are applied. The file appears whole or not at all.
[[nodiscard]] Result<void> save_measured(host::Disk& disk, const std::string& directory, StepNumber step,
                                         const Measured& measured);
// What was measured of the network of that step. Nothing if that is not known, or the file cannot be read.
[[nodiscard]] std::optional<Measured> load_measured(host::Disk& disk, const std::string& directory,
                                                    StepNumber step);

}  // namespace gossamer::commands
