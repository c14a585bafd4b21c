// SPDX-License-Identifier: Apache-2.0
//
// simulate runs many seeds of one scenario on all workers. The result depends on the seeds and not on the
// number of workers, because reports are folded in the order of seeds.
//
//   state hash: h = 0; for each seed in order: h = mix(h ^ hash of the seed)
//   mix:        the finisher of splitmix64
//
// A seed that is run twice must give the same report. Another report counts as a violation. From kProbeSeeds
// seeds on, a preset with its keys as they are must have reached all of its probes.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "commands/simulate/simulation_preset.h"
#include "run/node_host.h"

namespace gossamer::commands {

enum class Twice { kFirstSeeds, kEverySeed };

inline constexpr std::uint64_t kFirstSeedsTwice = 2;
inline constexpr std::uint64_t kProbeSeeds = 2000;
inline constexpr std::size_t kShownViolations = 10;

struct SimulateRequest {
  std::string name;                // the preset, or the file as the user named it
  std::vector<std::string> words;  // key=value as the user wrote them, for the command that replays a seed
  RunSeed run_seed;
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1;
  Twice twice = Twice::kFirstSeeds;
  // Whether the preset is run as it is, so that rare branches must be reached.
  bool needs_probes = false;
  SimulationTrace trace = {};
  std::function<bool()> stop = {};  // asked between seeds
};

struct SimulateResult {
  struct Violation {
    std::uint64_t seed = 0;
    std::string what;
  };
  std::uint64_t seeds = 0;  // seeds that were run and folded
  bool stopped = false;
  std::uint64_t violations = 0;
  std::vector<Violation> first_violations;  // at most kShownViolations, in order of seeds
  std::uint64_t state_hash = 0;
  double virtual_seconds = 0;
  double wall_seconds = 0;
  std::vector<SimulationFigure> figures;
  std::vector<std::uint64_t> most_at;  // first seed with the value of each figure, if kMost
  std::vector<SimulationProbe> probes;

  [[nodiscard]] std::vector<SimulationProbe> unreached() const;
};

// Violations are results, not errors. The console shows them as they come.
[[nodiscard]] SimulateResult simulate(const run::NodeHost& host, const SimulateRequest& request);

// "gossamer simulate cluster-chaos members=5 --seed 17 --trace", fit for a shell.
[[nodiscard]] std::string replay_command(const SimulateRequest& request, std::uint64_t seed);
// What is wrong with the result, if anything, as an error of the command (kFailed).
[[nodiscard]] std::optional<Error> judge(const SimulateRequest& request, const SimulateResult& result);

// {"scenario","seeds","violations","first_bad_seed","virtual_seconds","wall_seconds","figures":{"state_hash",
// ..., "probes_unreached":[...]}}
[[nodiscard]] std::string to_json(const SimulateRequest& request, const SimulateResult& result);
[[nodiscard]] std::string to_text(const SimulateRequest& request, const SimulateResult& result);

}  // namespace gossamer::commands
