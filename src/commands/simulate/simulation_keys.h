// SPDX-License-Identifier: Apache-2.0
//
// The parts that the keys of several simulations have in common. Thread rule: pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "simulation/cluster_chaos.h"
#include "simulation/fault.h"

namespace gossamer::node {

// A key with a word as its value, and the word that counts when it is not set.
struct SimulationWord {
  std::string_view name;
  std::string_view standard;
  std::string_view help;
};
[[nodiscard]] std::string help_of(const SimulationWord& word);

[[nodiscard]] Error wrong_value(const SimulationSetting& setting, std::string expected);
[[nodiscard]] Error contradiction(const SimulationSetting& setting, std::string what, std::string expected);

// Reads kinds=. All kinds are an empty list. kUsage names the nearest of `known`.
[[nodiscard]] Result<std::vector<simulation::FaultKind>> read_kinds(
    const SimulationSetting& setting, const std::vector<simulation::FaultKind>& known);
// Reads store=, which is file, cluster or drawn. Nothing means drawn.
[[nodiscard]] Result<std::optional<simulation::StoreKind>> read_store(const SimulationSetting& setting);
// The kUsage error for break=NAME when NAME is no protection.
[[nodiscard]] Error no_protection(const SimulationSetting& setting,
                                  const std::vector<std::string_view>& names);
// Refuses keys of drawn faults beside written faults.
[[nodiscard]] Result<void> check_drawn(const Scenario& scenario, const SimulationSetting& setting);

template <class Probe, std::size_t n>
void add_probes(std::vector<SimulationProbe>& out, const std::array<ProbeName<Probe>, n>& names,
                const ProbeCounts<Probe>& counts) {
  for (const ProbeName<Probe>& one : names) out.push_back({one.name, one.sentence, counts.count(one.probe)});
}

}  // namespace gossamer::node
