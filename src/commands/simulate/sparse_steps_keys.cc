// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/sparse_steps_keys.h"

#include <fmt/format.h>

#include "commands/simulate/simulation_keys.h"

namespace gossamer::commands {
namespace {

using settings::key;
using settings::KeySetting;
using simulation::SparseStepsOptions;

const settings::KeyTable<SparseStepsOptions>& sparse_steps_table() {
  using O = SparseStepsOptions;
  constexpr Duration kMillisecond = from_milliseconds(1);
  static const settings::KeyTable<O> table(
      kSimulationWording,
      {key<&O::codec>("codec", {.choices = {net::kF32CodecNames.begin(), net::kF32CodecNames.end()}},
                      "of what is exchanged: f32, bf16 or int8"),
       key<&O::members>("members", {.min = 1, .max = 64}, "that train together"),
       key<&O::units>("units", {.min = 16, .max = 4096, .multiple_of = 16}, "of the hidden layer"),
       key<&O::features>("features", {.min = 1, .max = 10'000'000},
                         "of the network; they cost memory, no bytes of a step"),
       key<&O::labels>("labels", {.min = 8, .max = 10'000'000}, "of the network, likewise"),
       key<&O::batch>("batch", {.min = 1, .max = 65'536}, "samples of a step"),
       key<&O::nonzeros>("nonzeros", {.min = 1, .max = 10'000}, "features of a sample, at most"),
       key<&O::steps>("steps", {.min = 1, .max = 10'000}, "that are measured, after the first five"),
       key<&O::rate_mbps>("rate_mbps", {.min = 1, .max = 1'000'000},
                          "of each member's line, up and down, 10^6 bits a second"),
       key<&O::rtt>("rtt_ms", {.max = 2000, .unit = kMillisecond}, "between any two members"),
       key<&O::compute>("compute_ms", {.max = 60'000, .unit = kMillisecond},
                        "that a member's share of a step takes"),
       key<&O::staleness>("staleness", {.max = 1}, "1: two steps are in flight, 0: one")});
  return table;
}

SeedReport to_seed_report(const SparseStepsOptions& options, const simulation::SparseStepsReport& report) {
  constexpr auto kMost = SimulationFigure::Fold::kMost;
  const simulation::SparseStepsBound least = simulation::least_of_step(options);
  return {.violation = report.violation,
          .state_hash = report.state_hash,
          .virtual_seconds = report.virtual_seconds,
          .figures = {{"seconds_per_step", report.seconds_per_step, kMost},
                      {"least_seconds_per_step", least.seconds, kMost},
                      {"bytes_per_step", report.bytes_per_step, kMost},
                      {"least_bytes_per_step", least.bytes, kMost},
                      {"delays_per_exchange", report.delays_per_exchange, kMost}},
          .probes = {}};
}

}  // namespace

Result<SparseStepsOptions> sparse_steps_options(const Scenario& scenario) {
  if (!scenario.faults.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "sparse-steps",
                 .what = "nothing goes wrong while steps are measured",
                 .got = fmt::format("{} faults", scenario.faults.size()),
                 .expected = "none",
                 .fix = "use the preset sparse-chaos for faults"};
  }
  SparseStepsOptions options;
  for (const KeySetting& setting : scenario.settings) {
    if (auto done = set_key(sparse_steps_table(), options, setting); !done.ok()) return done.error();
  }
  return options;
}

Result<RunSeed> prepare_sparse_steps(const Scenario& scenario) {
  const auto options = sparse_steps_options(scenario);
  if (!options.ok()) return options.error();
  return seeds_of(*options, [](const SparseStepsOptions& one) {
    return to_seed_report(one, simulation::run_sparse_steps(one));
  });
}

std::string sparse_steps_keys_help() { return settings::help_lines(sparse_steps_table().defaults()); }

std::string sparse_steps_defects_help() { return "nothing can be switched off\n"; }

}  // namespace gossamer::commands
