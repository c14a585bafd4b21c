// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/sparse_chaos_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "commands/simulate/simulation_keys.h"

namespace gossamer::commands {
namespace {

using cluster::DefectName;
using settings::Key;
using settings::key;
using settings::KeySetting;
using simulation::SparseChaosOptions;
using sparse_engine::FleetDefect;
using sparse_engine::FleetDefectName;

// Some of the cluster's protections matter here, too.
std::optional<std::string> set_defect(SparseChaosOptions& options, const Key& /*key*/,
                                      std::string_view text) {
  const auto* const own = std::ranges::find(sparse_engine::kFleetDefects, text, &FleetDefectName::name);
  const auto* const shared = std::ranges::find(cluster::kTrainingDefects, text, &DefectName::name);
  const bool is_own = own != sparse_engine::kFleetDefects.end();
  const bool is_shared = shared != cluster::kTrainingDefects.end();
  if (!is_own && !is_shared && text != kNoDefect) {
    std::vector<std::string_view> names;
    for (const DefectName& one : cluster::kTrainingDefects) names.push_back(one.name);
    for (const FleetDefectName& one : sparse_engine::kFleetDefects) names.push_back(one.name);
    return expected_protection(text, names);
  }
  options.defect = is_own ? own->defect : FleetDefect::kNone;
  options.cluster_defect = is_shared ? shared->defect : cluster::Defect::kNone;
  return std::nullopt;
}

std::string defect_text(const SparseChaosOptions& options, const Key& /*key*/) {
  const auto* const shared =
      std::ranges::find(cluster::kTrainingDefects, options.cluster_defect, &DefectName::defect);
  if (shared != cluster::kTrainingDefects.end()) return std::string(shared->name);
  const auto* const own =
      std::ranges::find(sparse_engine::kFleetDefects, options.defect, &FleetDefectName::defect);
  return std::string(own == sparse_engine::kFleetDefects.end() ? kNoDefect : own->name);
}

using SparseRows = std::vector<settings::KeyRow<SparseChaosOptions>>;
using S = SparseChaosOptions;

// Keys whose value is a word.
SparseRows word_keys() {
  return {
      key<&S::store>("store", {.choices = {"file", "cluster"}, .unset = kDrawn},
                     "file: one coordinator; cluster: a standby takes over; drawn: either"),
      key<&S::driver>("driver", {.choices = {"prompt", "batches"}, .unset = kDrawn},
                      "prompt: engines hear of all at once; batches: of 20 ms together; drawn: either"),
      key<&S::dense>("dense", {.choices = {"0", "1", "2", "3", "4"}, .unset = kDrawn},
                     "layers between the first and the output, 0..4; drawn: 0, 1 or 2"),
      key<&S::staleness>("staleness", {.choices = {"0", "1"}, .unset = kDrawn},
                         "steps whose updates a step does without, 0 or 1; drawn: either"),
      key<&S::exchange>("exchange", {.choices = {"shares", "dslide"}, .unset = kDrawn},
                        "of scores: shares, or dslide, all of them; drawn: either"),
      key<&S::lsh>("lsh", {.choices = {"none", "shared", "own"}, .unset = kDrawn},
                   "hash tables that find negatives: none, shared or own (lsh.sets); drawn: three runs in "
                   "eight have some"),
      key<&S::evaluation>("evaluation", {.choices = {"yes", "no"}, .unset = kDrawn},
                          "yes: members measure what they have trained; drawn: one run in four"),
      key<&S::codec>("codec",
                     {.choices = {net::kF32CodecNames.begin(), net::kF32CodecNames.end()}, .unset = kDrawn},
                     "of what is exchanged in a step: f32, bf16 or int8, which round; drawn: one run in "
                     "four rounds"),
      key<&S::power_off>("power_off", {.choices = {"yes", "no"}, .unset = kDrawn},
                         "yes: all lose power at once, others go on from the newest checkpoint; drawn: one "
                         "run in four"),
      key<&S::nothing_lost>("expect.nothing_lost", {.choices = {"yes", "no"}},
                            "yes: the run may not fail, whatever faults take"),
      kinds_row<S, simulation::sparse_chaos_kinds>(),
      {.key = {.name = "break", .help = "a protection to switch off; break=list names them"},
       .get = defect_text,
       .set = set_defect}};
}

SparseRows number_keys() {
  constexpr Duration kMillisecond = from_milliseconds(1);
  return {
      key<&S::members>("members", {.max = 16}, "of the fleet at first; 0: drawn, 3 to 6"),
      key<&S::longest_standstill>("expect.longest_standstill_s", {.max = 3600},
                                  "without a step, from the first to the last"),
      key<&S::copies>("copies", {.max = 16}, "of each piece, beside the holder's; 0: drawn, 1 to 3"),
      key<&S::steps>("steps", {.max = 10'000}, "of the run; 0: drawn, 24 to 40"),
      key<&S::snapshot_every>("snapshot_every", {.max = 10'000}, "so many steps; 0: drawn, 2 to 16"),
      key<&S::delay_ms>("delay_ms", {.max = 1000}, "of every path, one way; 0: drawn, 1 to 40"),
      key<&S::scatter>("scatter_ms", {.max = 1000, .unset = "", .shown = "0", .unit = kMillisecond},
                       "each machine's line adds up to so much, one way; drawn where faults are"),
      key<&S::hidden>("hidden", {.max = 1, .unset = "", .shown = "0"},
                      "fraction of members that listen nowhere; drawn where faults are"),
      key<&S::faults>("faults", {.max = 1000}, "drawn for each seed"),
      key<&S::trouble>("trouble_s", {.max = 3600}, "faults begin within so many seconds"),
      key<&S::calm>("calm_s", {.min = 15, .max = 3600},
                    "after the last fault has ended, until all steps must be done"),
      key<&S::most_error>("expect.relative_weight_error", {.max = 1},
                          "distance of all weights to those of one learner; 0: 1e-4, of bf16 0.08, of int8 "
                          "0.2")};
}

const settings::KeyTable<SparseChaosOptions>& sparse_chaos_table() {
  static const settings::KeyTable<SparseChaosOptions> table(
      kSimulationWording, settings::join_rows({word_keys(), number_keys()}),
      {{.name = "microbatches", .value = "1", .why = "steps do not go in parts any more"}});
  return table;
}

// What the engine does not do together (engines/sparse/config/config.h says so to users).
Result<void> check_together(const SparseChaosOptions& options, const Scenario& scenario) {
  const bool dslide = options.exchange == sparse_engine::ExchangeKind::kDslide;
  if (!dslide || options.lsh != simulation::HashTables::kShared) return {};
  const auto found =
      std::ranges::find(scenario.settings.rbegin(), scenario.settings.rend(), "lsh", &KeySetting::name);
  return contradiction(found == scenario.settings.rend() ? KeySetting{} : *found,
                       "members cannot tell how many scores they will have",
                       "lsh=own or none beside exchange=dslide");
}

SeedReport to_seed_report(const simulation::SparseChaosReport& report) {
  using Fold = SimulationFigure::Fold;
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  const bool rounds = report.codec != net::Codec::kF32;
  const auto reached = [&](sparse_engine::FleetProbe probe) { return number(report.probes.count(probe)); };
  SeedReport out{
      .violation = report.violation,
      .state_hash = report.state_hash,
      .virtual_seconds = report.virtual_seconds,
      .figures = {{"events", number(report.events)},
                  {"faults_injected", number(report.faults_injected)},
                  {"steps_committed", number(report.steps_committed)},
                  {"member_lives", number(report.lives)},
                  {"recoveries", reached(sparse_engine::FleetProbe::kRecovered)},
                  {"steps_replayed", reached(sparse_engine::FleetProbe::kReplayedStep)},
                  {"steps_saved", number(report.steps_saved)},
                  {"evaluations", number(report.evaluations)},
                  {"runs_lost", report.lost ? 1.0 : 0.0},
                  {"max_relative_weight_error", rounds ? 0 : report.relative_weight_error, Fold::kMost},
                  {"max_rounded_weight_error", rounds ? report.relative_weight_error : 0, Fold::kMost}},
      .probes = {}};
  add_probes(out.probes, sparse_engine::kFleetProbes, report.probes);
  return out;
}

// A scenario file of an older program is read as its run.toml is: with a key that is no more, if its value is
// the one that all runs have now.
bool says_what_all_do(const KeySetting& setting) {
  const settings::RemovedKey* const old = sparse_chaos_table().find_removed(setting.name);
  return old != nullptr && !setting.where.empty() && setting.text == old->value;
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
  for (const KeySetting& setting : scenario.settings) {
    if (says_what_all_do(setting)) continue;
    if (auto done = set_key(sparse_chaos_table(), options, setting); !done.ok()) return done.error();
    if (auto done = check_drawn(scenario, setting); !done.ok()) return done.error();
  }
  if (auto done = check_together(options, scenario); !done.ok()) return done.error();
  options.script = scenario.faults;
  return options;
}

Result<RunSeed> prepare_sparse_chaos(const Scenario& scenario) {
  const auto options = sparse_chaos_options(scenario);
  if (!options.ok()) return options.error();
  return seeds_of(*options, [](const SparseChaosOptions& one) {
    return to_seed_report(simulation::run_sparse_chaos(one));
  });
}

std::string sparse_chaos_keys_help() { return settings::help_lines(sparse_chaos_table().defaults()); }

std::string sparse_chaos_defects_help() {
  std::string text;
  for (const FleetDefectName& one : sparse_engine::kFleetDefects)
    text += fmt::format("{:<24} {}\n", one.name, one.sentence);
  for (const DefectName& one : cluster::kTrainingDefects)
    text += fmt::format("{:<24} {}\n", one.name, one.sentence);
  return text;
}

}  // namespace gossamer::commands
