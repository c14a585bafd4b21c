// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/sparse_steps_keys.h"

#include <fmt/format.h>

#include "commands/simulate/simulation_keys.h"
#include "settings/bench_options.h"

namespace gossamer::node {
namespace {

using simulation::SparseStepsOptions;

constexpr SimulationWord kCodec{"codec", "bf16", "of what is exchanged: f32, bf16 or int8"};

struct Numbers {
  std::uint64_t members = 8;
  std::uint64_t units = 128;
  std::uint64_t features = 8192;
  std::uint64_t labels = 8192;
  std::uint64_t batch = 256;
  std::uint64_t nonzeros = 75;
  std::uint64_t steps = 20;
  double rate_mbps = 1000;
  double rtt_ms = 20;
  double compute_ms = 0;
  std::uint64_t staleness = 0;
};

BenchOptions table(Numbers& n) {
  return {
      "simulate",
      {{"members", "that train together", &n.members, 1, 64},
       {"units", "of the hidden layer", &n.units, 16, 4096, 16},
       {"features", "of the network; they cost memory, no bytes of a step", &n.features, 1, 10'000'000},
       {"labels", "of the network, likewise", &n.labels, 8, 10'000'000},
       {"batch", "samples of a step", &n.batch, 1, 65'536},
       {"nonzeros", "features of a sample, at most", &n.nonzeros, 1, 10'000},
       {"steps", "that are measured, after the first five", &n.steps, 1, 10'000},
       {"rate_mbps", "of each member's line, up and down, 10^6 bits a second", &n.rate_mbps, 1, 1'000'000},
       {"rtt_ms", "between any two members", &n.rtt_ms, 0, 2000},
       {"compute_ms", "that a member's share of a step takes", &n.compute_ms, 0, 60'000},
       {"staleness", "1: two steps are in flight, 0: one", &n.staleness, 0, 1}},
      {kCodec.name}};
}

Result<void> set_codec(SparseStepsOptions& options, const SimulationSetting& setting) {
  for (const net::Codec codec : {net::Codec::kF32, net::Codec::kBf16, net::Codec::kInt8}) {
    if (setting.value != net::name(codec)) continue;
    options.codec = codec;
    return {};
  }
  return wrong_value(setting, "f32, bf16 or int8");
}

void apply(SparseStepsOptions& options, const Numbers& numbers) {
  options.members = numbers.members;
  options.units = numbers.units;
  options.features = numbers.features;
  options.labels = numbers.labels;
  options.batch = numbers.batch;
  options.nonzeros = numbers.nonzeros;
  options.steps = numbers.steps;
  options.rate_mbps = numbers.rate_mbps;
  options.rtt = from_milliseconds(numbers.rtt_ms);
  options.compute = from_milliseconds(numbers.compute_ms);
  options.staleness = numbers.staleness;
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
  Numbers numbers;
  for (const SimulationSetting& setting : scenario.settings) {
    if (setting.name == kCodec.name) {
      if (auto done = set_codec(options, setting); !done.ok()) return done.error();
      continue;
    }
    const Result<void> done =
        set_bench_option(table(numbers), fmt::format("{}={}", setting.name, setting.value));
    if (done.ok()) continue;
    Error error = done.error();
    error.where = setting.where;
    return error;
  }
  apply(options, numbers);
  return options;
}

Result<RunSeed> prepare_sparse_steps(const Scenario& scenario) {
  auto options = sparse_steps_options(scenario);
  if (!options.ok()) return options.error();
  return RunSeed([options = *options](std::uint64_t seed, const SimulationTrace& trace) {
    SparseStepsOptions own = options;
    own.seed = seed;
    own.trace = trace;
    return to_seed_report(own, simulation::run_sparse_steps(own));
  });
}

std::string sparse_steps_keys_help() {
  Numbers numbers;
  return help_of(kCodec) + bench_options_help(table(numbers));
}

std::string sparse_steps_defects_help() { return "nothing can be switched off\n"; }

}  // namespace gossamer::node
