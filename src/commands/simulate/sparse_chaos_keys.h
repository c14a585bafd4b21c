// SPDX-License-Identifier: Apache-2.0
//
// The keys of the simulation `sparse-chaos`. They become the options of src/simulation/sparse. Thread
// rule: pure functions, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "simulation/sparse/sparse_chaos.h"

namespace gossamer::commands {

// kUsage for an unknown key (it names the nearest), a value out of its range, or
// keys that contradict each other.
[[nodiscard]] Result<simulation::SparseChaosOptions> sparse_chaos_options(const Scenario& scenario);

// The functions of the preset's row (simulation_preset.h).
[[nodiscard]] Result<RunSeed> prepare_sparse_chaos(const Scenario& scenario);
[[nodiscard]] std::string sparse_chaos_keys_help();
[[nodiscard]] std::string sparse_chaos_defects_help();

}  // namespace gossamer::commands
