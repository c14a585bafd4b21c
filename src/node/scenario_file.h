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
#include "node/simulation_preset.h"

namespace gossamer::node {

// Keys and their values are looked at when the scenario is prepared; everything else here.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text, std::string_view file);

}  // namespace gossamer::node
