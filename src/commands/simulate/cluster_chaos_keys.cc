// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/cluster_chaos_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "cluster/control/defect.h"
#include "commands/simulate/simulation_keys.h"
#include "net/link/link_probe.h"

namespace gossamer::commands {
namespace {

using settings::Key;
using settings::key;
using settings::KeySetting;
using simulation::ChaosExpectations;
using simulation::ChaosOptions;
using simulation::FaultKind;

std::vector<FaultKind> all_kinds() {
  std::vector<FaultKind> kinds;
  for (const simulation::FaultName& one : simulation::kFaults) kinds.push_back(one.kind);
  return kinds;
}

std::optional<std::string> set_defect(ChaosOptions& options, const Key& /*key*/, std::string_view text) {
  const auto defect = text == kNoDefect ? std::optional(cluster::Defect::kNone) : cluster::defect_of(text);
  if (!defect) {
    std::vector<std::string_view> names;
    for (const cluster::DefectName& one : cluster::kDefects) names.push_back(one.name);
    return expected_protection(text, names);
  }
  options.defect = *defect;
  return std::nullopt;
}

std::string defect_text(const ChaosOptions& options, const Key& /*key*/) {
  const auto* const found =
      std::ranges::find(cluster::kDefects, options.defect, &cluster::DefectName::defect);
  return std::string(found == cluster::kDefects.end() ? kNoDefect : found->name);
}

using ClusterRows = std::vector<settings::KeyRow<ChaosOptions>>;
using C = ChaosOptions;

ClusterRows fleet_keys() {
  using host::PathQuality;
  constexpr Duration kMillisecond = from_milliseconds(1);
  return {
      key<&C::store>("store", {.choices = {"file", "cluster"}, .unset = kDrawn},
                     "file: one coordinator; cluster: a standby takes over; drawn: either"),
      key<&C::identity>("certificates", {.choices = {"yes", "no"}, .unset = kDrawn},
                        "yes: nodes keep their numbers from life to life; no; drawn: either"),
      key<&C::view_change>("view_change", {.choices = {"frozen", "announced"}, .unset = kDrawn},
                           "frozen: members come to rest; announced: they need not; drawn where faults are"),
      key<&C::steps>("steps", {.choices = {"stop", "end"}},
                     "end: where a change of the view can wait, members end the open step first"),
      kinds_row<C, all_kinds>(),
      {.key = {.name = "break", .help = "a protection to switch off; break=list names them"},
       .get = defect_text,
       .set = set_defect},
      key<&C::members>("members", {.min = 1, .max = 64}, "of the fleet"),
      key<&C::first_members>("first_members", {.min = 1, .max = 64}, "must serve before the first step"),
      key<&C::things>("things", {.min = 1, .max = 1000}, "shards to place"),
      key<&C::local_members>("local_members", {.max = 64}, "of them on the first coordinator's machine"),
      key<&C::faults>("faults", {.max = 1000}, "drawn for each seed"),
      key<&C::trouble>("trouble_s", {.max = 3600}, "faults begin within so many seconds"),
      key<&C::calm>("calm_s", {.min = 15, .max = 3600}, "after the last fault has ended"),
      key<&C::hidden>("hidden", {.max = 1, .unset = "", .shown = "0"},
                      "share of members behind NAT; drawn where faults are"),
      key<&C::memory>("memory", {.max = 1, .unset = "", .shown = "1"},
                      "of a member, in shares of all things; drawn where faults are"),
      key<&C::freeze_time>("freeze_s", {.min = 1, .max = 3600, .unset = "", .shown = "30"},
                           "members have for coming to rest; drawn where faults are"),
      key<&C::clock_error>("clock_error", {.max = 0.5},
                           "clocks run up to so much too fast or slow; leases allow for 0.024"),
      key<&C::path, &PathQuality::delay>("delay_ms", {.max = 1000, .unit = kMillisecond},
                                         "of every path, one way"),
      key<&C::path, &PathQuality::jitter>("jitter_ms", {.max = 1000, .unit = kMillisecond},
                                          "of every path: segments take up to so much longer"),
      key<&C::scatter>("scatter_ms", {.max = 1000, .unset = "", .shown = "0", .unit = kMillisecond},
                       "each machine's line adds up to so much, one way; drawn where faults are"),
      key<&C::path, &PathQuality::loss>("loss", {.max = 0.5}, "of every path: share of segments")};
}

ClusterRows expectation_keys() {
  using E = ChaosExpectations;
  return {
      key<&C::expect, &E::most_lives>("expect.max_lives", {.max = 1'000'000},
                                      "members begin at most so often in all"),
      key<&C::expect, &E::least_steps>("expect.steps_at_least", {.max = 1'000'000}, "committed at the end"),
      key<&C::expect, &E::least_steps_under_faults>("expect.steps_under_faults_at_least", {.max = 1'000'000},
                                                    "applied from the first fault to the end of the last"),
      key<&C::expect, &E::recovered_within>("expect.recovered_within_s", {.max = 3600},
                                            "back to work after the last fault's end"),
      key<&C::expect, &E::longest_standstill>("expect.longest_standstill_s", {.max = 3600},
                                              "without a step, from the first on")};
}

const settings::KeyTable<ChaosOptions>& cluster_chaos_table() {
  static const settings::KeyTable<ChaosOptions> table(
      kSimulationWording, settings::join_rows({fleet_keys(), expectation_keys()}));
  return table;
}

Result<void> validate(const Scenario& scenario, const ChaosOptions& options) {
  for (const KeySetting& setting : scenario.settings) {
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
  for (const KeySetting& setting : scenario.settings) {
    if (auto done = set_key(cluster_chaos_table(), options, setting); !done.ok()) return done.error();
  }
  options.script = scenario.faults;
  if (auto done = validate(scenario, options); !done.ok()) return done.error();
  return options;
}

Result<RunSeed> prepare_cluster_chaos(const Scenario& scenario) {
  const auto options = cluster_chaos_options(scenario);
  if (!options.ok()) return options.error();
  return seeds_of(*options,
                  [](const ChaosOptions& one) { return to_seed_report(simulation::run_cluster_chaos(one)); });
}

std::string cluster_chaos_keys_help() { return settings::help_lines(cluster_chaos_table().defaults()); }

std::string cluster_chaos_defects_help() {
  std::string text;
  for (const cluster::DefectName& one : cluster::kDefects)
    text += fmt::format("{:<24} {}\n", one.name, one.sentence);
  return text;
}

}  // namespace gossamer::commands
