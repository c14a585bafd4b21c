// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/cluster_chaos_keys.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cluster/control/defect.h"
#include "commands/simulate/simulation_keys.h"
#include "net/link/link_probe.h"
#include "settings/bench_options.h"

namespace gossamer::node {
namespace {

using simulation::ChaosOptions;
using simulation::FaultKind;
using simulation::FaultName;
using simulation::Identity;

constexpr std::string_view kCommand = "simulate";

// Numbers as users write them; the last value of a bound expects nothing.
struct Numbers {
  std::uint64_t members = 4;
  std::uint64_t first_members = 3;
  std::uint64_t things = 8;
  std::uint64_t faults = 8;
  double trouble_s = 30;
  double calm_s = 45;
  double hidden = 0;
  double memory = 1;
  double freeze_s = 30;
  double clock_error = 0.02;
  double delay_ms = 10;
  double jitter_ms = 0;
  double loss = 0;
  std::uint64_t most_lives = 1'000'000;
  std::uint64_t least_steps = 0;
  std::uint64_t least_steps_under_faults = 0;
  double recovered_within_s = 3600;
  double longest_standstill_s = 3600;
};

constexpr std::array<SimulationWord, 5> kWords{{
    {"store", "drawn", "file: one coordinator; cluster: a standby takes over; drawn: either"},
    {"certificates", "drawn", "yes: nodes keep their numbers from life to life; no; drawn: either"},
    {"view_change", "drawn",
     "frozen: members come to rest; announced: they need not; drawn where faults are"},
    {"kinds", "all", "of the faults that are drawn, separated by commas"},
    {"break", "none", "a protection to switch off; break=list names them"},
}};

BenchOptions table(Numbers& n) {
  return {kCommand,
          {{"members", "of the fleet", &n.members, 1, 64},
           {"first_members", "must serve before the first step", &n.first_members, 1, 64},
           {"things", "shards to place", &n.things, 1, 1000},
           {"faults", "drawn for each seed", &n.faults, 0, 1000},
           {"trouble_s", "faults begin within so many seconds", &n.trouble_s, 0, 3600},
           {"calm_s", "after the last fault has ended", &n.calm_s, 15, 3600},
           {"hidden", "share of members behind NAT; drawn where faults are", &n.hidden, 0, 1},
           {"memory", "of a member, in shares of all things; drawn where faults are", &n.memory, 0, 1},
           {"freeze_s", "members have for coming to rest; drawn where faults are", &n.freeze_s, 1, 3600},
           {"clock_error", "clocks run up to so much too fast or slow; leases allow for 0.024",
            &n.clock_error, 0, 0.5},
           {"delay_ms", "of every path, one way", &n.delay_ms, 0, 1000},
           {"jitter_ms", "of every path: segments take up to so much longer", &n.jitter_ms, 0, 1000},
           {"loss", "of every path: share of segments", &n.loss, 0, 0.5},
           {"expect.max_lives", "members begin at most so often in all", &n.most_lives, 0, 1'000'000},
           {"expect.steps_at_least", "committed at the end", &n.least_steps, 0, 1'000'000},
           {"expect.steps_under_faults_at_least", "applied from the first fault to the end of the last",
            &n.least_steps_under_faults, 0, 1'000'000},
           {"expect.recovered_within_s", "back to work after the last fault's end", &n.recovered_within_s, 0,
            3600},
           {"expect.longest_standstill_s", "without a step, from the first on", &n.longest_standstill_s, 0,
            3600}},
          {"store", "certificates", "view_change", "kinds", "break"}};
}

Result<void> set_kinds(ChaosOptions& options, const SimulationSetting& setting) {
  std::vector<FaultKind> known;
  for (const FaultName& one : simulation::kFaults) known.push_back(one.kind);
  auto kinds = read_kinds(setting, known);
  if (!kinds.ok()) return kinds.error();
  options.kinds = std::move(*kinds);
  return {};
}

Result<void> set_defect(ChaosOptions& options, const SimulationSetting& setting) {
  options.defect = cluster::Defect::kNone;
  if (setting.value == "none") return {};
  if (const auto defect = cluster::defect_of(setting.value)) {
    options.defect = *defect;
    return {};
  }
  std::vector<std::string_view> names;
  for (const cluster::DefectName& one : cluster::kDefects) names.push_back(one.name);
  return no_protection(setting, names);
}

Result<void> set_store(ChaosOptions& options, const SimulationSetting& setting) {
  const auto store = read_store(setting);
  if (!store.ok()) return store.error();
  options.store = *store;
  return {};
}

Result<void> set_certificates(ChaosOptions& options, const SimulationSetting& setting) {
  options.identity.reset();
  if (setting.value == "yes") {
    options.identity = Identity::kCertified;
  } else if (setting.value == "no") {
    options.identity = Identity::kNumbered;
  } else if (setting.value != "drawn") {
    return wrong_value(setting, "yes, no or drawn");
  }
  return {};
}

Result<void> set_view_change(ChaosOptions& options, const SimulationSetting& setting) {
  options.view_change.reset();
  if (setting.value == "frozen") {
    options.view_change = cluster::ViewChange::kFrozen;
  } else if (setting.value == "announced") {
    options.view_change = cluster::ViewChange::kAnnounced;
  } else if (setting.value != "drawn") {
    return wrong_value(setting, "frozen, announced or drawn");
  }
  return {};
}

Result<void> set_key(ChaosOptions& options, Numbers& numbers, const SimulationSetting& setting) {
  if (setting.name == "kinds") return set_kinds(options, setting);
  if (setting.name == "break") return set_defect(options, setting);
  if (setting.name == "store") return set_store(options, setting);
  if (setting.name == "certificates") return set_certificates(options, setting);
  if (setting.name == "view_change") return set_view_change(options, setting);
  const Result<void> done =
      set_bench_option(table(numbers), fmt::format("{}={}", setting.name, setting.value));
  if (done.ok() && setting.name == "hidden") options.hidden = numbers.hidden;
  if (done.ok() && setting.name == "memory") options.memory = numbers.memory;
  if (done.ok() && setting.name == "freeze_s") options.freeze_time = from_seconds(numbers.freeze_s);
  if (done.ok()) return {};
  Error error = done.error();
  error.where = setting.where;
  return error;
}

void apply(ChaosOptions& options, const Numbers& numbers) {
  options.members = numbers.members;
  options.first_members = numbers.first_members;
  options.things = numbers.things;
  options.faults = numbers.faults;
  options.trouble = from_seconds(numbers.trouble_s);
  options.calm = from_seconds(numbers.calm_s);
  options.clock_error = numbers.clock_error;
  options.path = {.delay = from_milliseconds(numbers.delay_ms),
                  .jitter = from_milliseconds(numbers.jitter_ms),
                  .loss = numbers.loss};
  options.expect = {.most_lives = numbers.most_lives,
                    .least_steps = numbers.least_steps,
                    .least_steps_under_faults = numbers.least_steps_under_faults,
                    .recovered_within = from_seconds(numbers.recovered_within_s),
                    .longest_standstill = from_seconds(numbers.longest_standstill_s)};
}

Result<void> validate(const Scenario& scenario, const ChaosOptions& options) {
  for (const SimulationSetting& setting : scenario.settings) {
    if (auto done = check_drawn(scenario, setting); !done.ok()) return done;
    const bool of_size = setting.name == "members" || setting.name == "first_members";
    if (of_size && options.first_members > options.members) {
      return contradiction(setting, "the first step waits for more members than there are",
                           fmt::format("first_members of at most {}", options.members));
    }
  }
  return {};
}

SeedReport to_seed_report(const simulation::ChaosReport& report) {
  using Fold = SimulationFigure::Fold;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  SeedReport out{
      .violation = report.violation,
      .state_hash = report.state_hash,
      .virtual_seconds = report.virtual_seconds,
      .figures = {{"events", number(report.events)},
                  {"faults_injected", number(report.faults_injected)},
                  {"steps_committed", number(report.steps_committed)},
                  {"member_lives", number(report.lives)},
                  {"recovery_seconds_max", report.recovery.value_or(Duration{}).seconds(), Fold::kMost},
                  {"standstill_seconds_max", report.standstill.seconds(), Fold::kMost}},
      .probes = {}};
  add_probes(out.probes, cluster::kControlProbes, report.probes.control);
  add_probes(out.probes, net::kLinkProbes, report.probes.link);
  return out;
}

}  // namespace

Result<ChaosOptions> cluster_chaos_options(const Scenario& scenario) {
  ChaosOptions options;
  Numbers numbers;
  for (const SimulationSetting& setting : scenario.settings) {
    if (auto done = set_key(options, numbers, setting); !done.ok()) return done.error();
  }
  apply(options, numbers);
  options.script = scenario.faults;
  if (auto done = validate(scenario, options); !done.ok()) return done.error();
  return options;
}

Result<RunSeed> prepare_cluster_chaos(const Scenario& scenario) {
  auto options = cluster_chaos_options(scenario);
  if (!options.ok()) return options.error();
  return RunSeed([options = *options](std::uint64_t seed, const SimulationTrace& trace) {
    ChaosOptions own = options;
    own.seed = seed;
    own.trace = trace;
    return to_seed_report(simulation::run_cluster_chaos(own));
  });
}

std::string cluster_chaos_keys_help() {
  std::string text;
  for (const SimulationWord& word : kWords) text += help_of(word);
  Numbers numbers;
  return text + bench_options_help(table(numbers));
}

std::string cluster_chaos_defects_help() {
  std::string text;
  for (const cluster::DefectName& one : cluster::kDefects)
    text += fmt::format("{:<24} {}\n", one.name, one.sentence);
  return text;
}

}  // namespace gossamer::node
