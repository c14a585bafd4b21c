// SPDX-License-Identifier: Apache-2.0
//
// A scenario as a TOML file (docs/protocols/scenario.md): a preset, its keys, and faults written down.
//
//   preset = "cluster-chaos"
//   store = "cluster"
//   [[fault]]
//   kind = "pause-coordinator"
//   at_s = 6
//   lasts_s = 30
//   [expect]
//   max_lives = 4
//
// Errors are kUsage with `where` = FILE:LINE:COLUMN. Thread rule: pure function, any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "commands/simulate/simulation_preset.h"

namespace gossamer::commands {

// Checks everything but keys and their values, which are checked when the scenario is prepared.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text, std::string_view file);

}  // namespace gossamer::commands
