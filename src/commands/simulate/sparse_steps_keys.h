// SPDX-License-Identifier: Apache-2.0
//
// The keys of the simulation `sparse-steps`. They become the options of src/simulation/sparse. Thread
// rule: pure functions, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "simulation/sparse/sparse_steps.h"

namespace gossamer::commands {

// kUsage for an unknown key (it names the nearest), a value out of its range, or written faults.
[[nodiscard]] Result<simulation::SparseStepsOptions> sparse_steps_options(const Scenario& scenario);

// The functions of the preset's row (simulation_preset.h).
[[nodiscard]] Result<RunSeed> prepare_sparse_steps(const Scenario& scenario);
[[nodiscard]] std::string sparse_steps_keys_help();
// No protection of this simulation can be switched off.
[[nodiscard]] std::string sparse_steps_defects_help();

}  // namespace gossamer::commands
