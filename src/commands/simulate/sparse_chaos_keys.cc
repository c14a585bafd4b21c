// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/sparse_chaos_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "commands/simulate/simulation_keys.h"
#include "settings/bench_options.h"

namespace gossamer::node {
namespace {

using engine::FleetDefect;
using engine::FleetDefectName;
using simulation::Driver;
using simulation::SparseChaosOptions;

constexpr std::string_view kCommand = "simulate";
constexpr std::string_view kNoFreeze =
    "no-freeze";  // of the cluster's protections, the one that matters here

// Numbers as users write them. A 0 in one of the first five means that the number is drawn.
struct Numbers {
  std::uint64_t members = 0;
  std::uint64_t copies = 0;
  std::uint64_t steps = 0;
  std::uint64_t snapshot_every = 0;
  double delay_ms = 0;
  std::uint64_t faults = 6;
  double trouble_s = 10;
  double calm_s = 60;
  double most_error = 0;
};

constexpr std::array<SimulationWord, 12> kWords{{
    {"store", "drawn", "file: one coordinator; cluster: a standby takes over; drawn: either"},
    {"driver", "drawn", "prompt: engines hear of all at once; batches: of 20 ms together; drawn: either"},
    {"dense", "drawn", "layers between the first and the output, 0..4; drawn: 0, 1 or 2"},
    {"staleness", "drawn", "steps whose updates a step does without, 0 or 1; drawn: either"},
    {"exchange", "drawn", "of scores: shares, or dslide, all of them; drawn: either"},
    {"lsh", "drawn",
     "hash tables that find negatives: none, shared or own (lsh.sets); drawn: three runs in eight have some"},
    {"microbatches", "drawn", "of a step, 1, 2 or 4; drawn: one run in four has more than one"},
    {"evaluation", "drawn", "yes: members measure what they have trained; drawn: one run in four"},
    {"codec", "drawn",
     "of what is exchanged in a step: f32, bf16 or int8, which round; drawn: one run in four rounds"},
    {"power_off", "drawn",
     "yes: all lose power at once, others go on from the newest checkpoint; drawn: one run in four"},
    {"kinds", "all", "of the faults that are drawn, separated by commas"},
    {"break", "none", "a protection to switch off; break=list names them"},
}};

BenchOptions table(Numbers& n) {
  return {kCommand,
          {{"members", "of the fleet at first; 0: drawn, 3 to 6", &n.members, 0, 16},
           {"copies", "of each piece, beside the holder's; 0: drawn, 1 to 3", &n.copies, 0, 16},
           {"steps", "of the run; 0: drawn, 24 to 40", &n.steps, 0, 10'000},
           {"snapshot_every", "so many steps; 0: drawn, 2 to 16", &n.snapshot_every, 0, 10'000},
           {"delay_ms", "of every path, one way; 0: drawn, 1 to 40", &n.delay_ms, 0, 1000},
           {"faults", "drawn for each seed", &n.faults, 0, 1000},
           {"trouble_s", "faults begin within so many seconds", &n.trouble_s, 0, 3600},
           {"calm_s", "after the last fault has ended, until all steps must be done", &n.calm_s, 15, 3600},
           {"expect.relative_weight_error",
            "distance of all weights to those of one learner; 0: 1e-4, of bf16 0.08, of int8 0.2",
            &n.most_error, 0, 1}},
          {"store", "driver", "dense", "staleness", "exchange", "lsh", "microbatches", "evaluation", "codec",
           "power_off", "kinds", "break"}};
}

Result<void> set_defect(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.defect = FleetDefect::kNone;
  options.cluster_defect = cluster::Defect::kNone;
  if (setting.value == "none") return {};
  std::vector<std::string_view> names{kNoFreeze};
  for (const FleetDefectName& one : engine::kFleetDefects) {
    names.push_back(one.name);
    if (one.name == setting.value) options.defect = one.defect;
  }
  if (setting.value == kNoFreeze) options.cluster_defect = cluster::Defect::kNoFreeze;
  const bool known = options.defect != FleetDefect::kNone || setting.value == kNoFreeze;
  return known ? Result<void>() : no_protection(setting, names);
}

Result<void> set_driver(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.driver.reset();
  if (setting.value == "prompt") options.driver = Driver::kPrompt;
  if (setting.value == "batches") options.driver = Driver::kBatches;
  if (!options.driver && setting.value != "drawn") return wrong_value(setting, "prompt, batches or drawn");
  return {};
}

Result<void> set_dense(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.dense.reset();
  if (setting.value == "drawn") return {};
  const bool digit = setting.value.size() == 1 && setting.value[0] >= '0' && setting.value[0] <= '4';
  if (!digit) return wrong_value(setting, "0, 1, 2, 3, 4 or drawn");
  options.dense = static_cast<std::size_t>(setting.value[0] - '0');
  return {};
}

Result<void> set_staleness(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.staleness.reset();
  if (setting.value == "0") options.staleness = 0;
  if (setting.value == "1") options.staleness = 1;
  if (!options.staleness && setting.value != "drawn") return wrong_value(setting, "0, 1 or drawn");
  return {};
}

Result<void> set_power_off(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.power_off.reset();
  if (setting.value == "yes") options.power_off = true;
  if (setting.value == "no") options.power_off = false;
  if (!options.power_off && setting.value != "drawn") return wrong_value(setting, "yes, no or drawn");
  return {};
}

Result<void> set_exchange(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.exchange.reset();
  if (setting.value == "shares") options.exchange = engine::ExchangeKind::kShares;
  if (setting.value == "dslide") options.exchange = engine::ExchangeKind::kDslide;
  if (!options.exchange && setting.value != "drawn") return wrong_value(setting, "shares, dslide or drawn");
  return {};
}

Result<void> set_lsh(SparseChaosOptions& options, const SimulationSetting& setting) {
  using simulation::HashTables;
  options.lsh.reset();
  if (setting.value == "none") options.lsh = HashTables::kNone;
  if (setting.value == "shared") options.lsh = HashTables::kShared;
  if (setting.value == "own") options.lsh = HashTables::kOwn;
  if (!options.lsh && setting.value != "drawn") return wrong_value(setting, "none, shared, own or drawn");
  return {};
}

Result<void> set_microbatches(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.microbatches.reset();
  if (setting.value == "drawn") return {};
  if (setting.value != "1" && setting.value != "2" && setting.value != "4")
    return wrong_value(setting, "1, 2, 4 or drawn");
  options.microbatches = static_cast<std::size_t>(setting.value[0] - '0');
  return {};
}

Result<void> set_evaluation(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.evaluation.reset();
  if (setting.value == "yes") options.evaluation = true;
  if (setting.value == "no") options.evaluation = false;
  if (!options.evaluation && setting.value != "drawn") return wrong_value(setting, "yes, no or drawn");
  return {};
}

Result<void> set_codec(SparseChaosOptions& options, const SimulationSetting& setting) {
  options.codec.reset();
  if (setting.value == "drawn") return {};
  for (const net::Codec codec : {net::Codec::kF32, net::Codec::kBf16, net::Codec::kInt8}) {
    if (setting.value != net::name(codec)) continue;
    options.codec = codec;
    return {};
  }
  return wrong_value(setting, "f32, bf16, int8 or drawn");
}

// Refuses keys that the engine does not take together (engines/sparse/config/config.h says so to users).
Result<void> check_together(const SparseChaosOptions& options, const Scenario& scenario) {
  using simulation::HashTables;
  const auto of = [&](std::string_view name) {
    const auto found = std::ranges::find(scenario.settings.rbegin(), scenario.settings.rend(), name,
                                         &SimulationSetting::name);
    return found == scenario.settings.rend() ? SimulationSetting{} : *found;
  };
  const bool dslide = options.exchange == engine::ExchangeKind::kDslide;
  const bool tables = options.lsh.value_or(HashTables::kNone) != HashTables::kNone;
  if (options.microbatches.value_or(1) > 1 && (dslide || tables || options.staleness == 1)) {
    return contradiction(of("microbatches"), "microbatches go alone",
                         "no staleness=1, exchange=dslide or lsh beside more than one of them");
  }
  if (dslide && options.lsh == HashTables::kShared) {
    return contradiction(of("lsh"), "members cannot tell how many scores they will have",
                         "lsh=own or none beside exchange=dslide");
  }
  return {};
}

Result<void> set_kinds(SparseChaosOptions& options, const SimulationSetting& setting) {
  auto kinds = read_kinds(setting, simulation::sparse_chaos_kinds());
  if (!kinds.ok()) return kinds.error();
  options.kinds = std::move(*kinds);
  return {};
}

Result<void> set_store(SparseChaosOptions& options, const SimulationSetting& setting) {
  const auto store = read_store(setting);
  if (!store.ok()) return store.error();
  options.store = *store;
  return {};
}

Result<void> set_key(SparseChaosOptions& options, Numbers& numbers, const SimulationSetting& setting) {
  if (setting.name == "kinds") return set_kinds(options, setting);
  if (setting.name == "break") return set_defect(options, setting);
  if (setting.name == "store") return set_store(options, setting);
  if (setting.name == "driver") return set_driver(options, setting);
  if (setting.name == "dense") return set_dense(options, setting);
  if (setting.name == "exchange") return set_exchange(options, setting);
  if (setting.name == "lsh") return set_lsh(options, setting);
  if (setting.name == "microbatches") return set_microbatches(options, setting);
  if (setting.name == "evaluation") return set_evaluation(options, setting);
  if (setting.name == "codec") return set_codec(options, setting);
  if (setting.name == "power_off") return set_power_off(options, setting);
  if (setting.name == "staleness") return set_staleness(options, setting);
  const Result<void> done =
      set_bench_option(table(numbers), fmt::format("{}={}", setting.name, setting.value));
  if (done.ok()) return {};
  Error error = done.error();
  error.where = setting.where;
  return error;
}

void apply(SparseChaosOptions& options, const Numbers& numbers) {
  options.members = numbers.members;
  options.copies = numbers.copies;
  options.steps = numbers.steps;
  options.snapshot_every = numbers.snapshot_every;
  options.delay_ms = numbers.delay_ms;
  options.faults = numbers.faults;
  options.trouble = from_seconds(numbers.trouble_s);
  options.calm = from_seconds(numbers.calm_s);
  options.most_error = numbers.most_error;
}

SeedReport to_seed_report(const simulation::SparseChaosReport& report) {
  using Fold = SimulationFigure::Fold;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  const bool rounds = report.codec != net::Codec::kF32;
  const auto reached = [&](engine::FleetProbe probe) { return number(report.probes.count(probe)); };
  SeedReport out{
      .violation = report.violation,
      .state_hash = report.state_hash,
      .virtual_seconds = report.virtual_seconds,
      .figures = {{"events", number(report.events)},
                  {"faults_injected", number(report.faults_injected)},
                  {"steps_committed", number(report.steps_committed)},
                  {"member_lives", number(report.lives)},
                  {"recoveries", reached(engine::FleetProbe::kRecovered)},
                  {"steps_replayed", reached(engine::FleetProbe::kReplayedStep)},
                  {"steps_saved", number(report.steps_saved)},
                  {"evaluations", number(report.evaluations)},
                  {"runs_lost", report.lost ? 1.0 : 0.0},
                  {"max_relative_weight_error", rounds ? 0 : report.relative_weight_error, Fold::kMost},
                  {"max_rounded_weight_error", rounds ? report.relative_weight_error : 0, Fold::kMost}},
      .probes = {}};
  add_probes(out.probes, engine::kFleetProbes, report.probes);
  return out;
}

}  // namespace

Result<SparseChaosOptions> sparse_chaos_options(const Scenario& scenario) {
  const std::vector<simulation::FaultKind> known = simulation::sparse_chaos_kinds();
  for (const simulation::Fault& fault : scenario.faults) {
    if (std::ranges::find(known, fault.kind) != known.end()) continue;
    return Error{.kind = ErrorKind::kUsage,
                 .where = "sparse-chaos",
                 .what = "a fault cannot be simulated with the sparse engine",
                 .got = fmt::format("'{}'", simulation::name(fault.kind)),
                 .expected = "a fault that 'kinds' of sparse-chaos may name",
                 .fix = "use the preset cluster-chaos for it"};
  }
  SparseChaosOptions options;
  Numbers numbers;
  for (const SimulationSetting& setting : scenario.settings) {
    if (auto done = set_key(options, numbers, setting); !done.ok()) return done.error();
    if (auto done = check_drawn(scenario, setting); !done.ok()) return done.error();
  }
  if (auto done = check_together(options, scenario); !done.ok()) return done.error();
  apply(options, numbers);
  options.script = scenario.faults;
  return options;
}

Result<RunSeed> prepare_sparse_chaos(const Scenario& scenario) {
  auto options = sparse_chaos_options(scenario);
  if (!options.ok()) return options.error();
  return RunSeed([options = *options](std::uint64_t seed, const SimulationTrace& trace) {
    SparseChaosOptions own = options;
    own.seed = seed;
    own.trace = trace;
    return to_seed_report(simulation::run_sparse_chaos(own));
  });
}

std::string sparse_chaos_keys_help() {
  std::string text;
  for (const SimulationWord& word : kWords) text += help_of(word);
  Numbers numbers;
  return text + bench_options_help(table(numbers));
}

std::string sparse_chaos_defects_help() {
  std::string text;
  for (const FleetDefectName& one : engine::kFleetDefects)
    text += fmt::format("{:<24} {}\n", one.name, one.sentence);
  return text + fmt::format("{:<24} {}\n", kNoFreeze, "a view is installed before all have come to rest");
}

}  // namespace gossamer::node
