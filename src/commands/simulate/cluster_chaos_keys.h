// SPDX-License-Identifier: Apache-2.0
//
// The keys of the simulation `cluster-chaos`. They become the options of src/simulation. Thread
// rule: pure functions, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "simulation/cluster_chaos.h"

namespace gossamer::commands {

// kUsage for an unknown key (it names the nearest), a value out of its range, or
// keys that contradict each other.
[[nodiscard]] Result<simulation::ChaosOptions> cluster_chaos_options(const Scenario& scenario);

// The functions of the preset's row (simulation_preset.h).
[[nodiscard]] Result<RunSeed> prepare_cluster_chaos(const Scenario& scenario);
[[nodiscard]] std::string cluster_chaos_keys_help();
[[nodiscard]] std::string cluster_chaos_defects_help();

}  // namespace gossamer::commands
