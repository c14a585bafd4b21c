// SPDX-License-Identifier: Apache-2.0
//
// The table of presets that `gossamer simulate` can run. Each preset turns keys into a function that runs one
// seed. A scenario is a preset with its keys and, from a file, written faults.
//
// Thread rule: plain values; a RunSeed may be called by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "settings/key_table.h"
#include "simulation/fault.h"

namespace gossamer::commands {

struct Scenario {
  std::string preset;
  std::vector<settings::KeySetting> settings;  // later ones win
  std::vector<simulation::Fault> faults;       // in place of drawn ones, if there are any
};

// A number of one seed, and how the numbers of many seeds are folded into one.
struct SimulationFigure {
  enum class Fold { kSum, kMost };
  std::string_view name;
  double value = 0;
  Fold fold = Fold::kSum;
};

struct SimulationProbe {
  std::string_view name;
  std::string_view sentence;
  std::uint64_t count = 0;
};

// What one seed gave. Figures and probes have the same names in the same order for every seed of a scenario.
struct SeedReport {
  std::optional<std::string> violation;
  std::uint64_t state_hash = 0;
  double virtual_seconds = 0;
  std::vector<SimulationFigure> figures;
  std::vector<SimulationProbe> probes;
};

// A function that is told what happens, with the simulated time in seconds. May be empty.
using SimulationTrace = std::function<void(double seconds, const std::string& who, const std::string& what)>;
using RunSeed = std::function<SeedReport(std::uint64_t seed, const SimulationTrace& trace)>;

struct SimulationPreset {
  std::string_view name;
  std::string_view help;
  // A line for each key with its default, meaning and range.
  std::string (*keys_help)();
  // "NAME  sentence" for each protection that break=NAME switches off.
  std::string (*defects_help)();
  // kUsage for a key or value that cannot be used, with its place.
  Result<RunSeed> (*prepare)(const Scenario& scenario);
  std::uint64_t seeds = 100;  // where the user does not say how many
};

[[nodiscard]] std::span<const SimulationPreset> simulation_presets();
// kUsage names the nearest preset.
[[nodiscard]] Result<const SimulationPreset*> find_simulation(std::string_view name,
                                                              const std::string& where);

// "members=5" of the command line. kUsage without a key or '='.
[[nodiscard]] Result<settings::KeySetting> parse_setting(std::string_view text);

}  // namespace gossamer::commands
