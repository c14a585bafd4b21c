// SPDX-License-Identifier: Apache-2.0
#include "commands/simulate/simulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/shell_word.h"

namespace gossamer::commands {
namespace {

// Seeds of one worker in a block. A block's reports are folded before the next block begins. With so many
// seeds, the wait for the last one is short beside the work.
constexpr std::uint64_t kSeedsOfWorker = 8;

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

bool same(const SeedReport& a, const SeedReport& b) {
  return a.state_hash == b.state_hash && a.violation == b.violation &&
         a.virtual_seconds == b.virtual_seconds &&
         std::ranges::equal(a.figures, b.figures, {}, &SimulationFigure::value, &SimulationFigure::value);
}

void fold(SimulateResult& result, std::uint64_t seed, const SeedReport& report) {
  ++result.seeds;
  result.state_hash = mix(result.state_hash ^ report.state_hash);
  result.virtual_seconds += report.virtual_seconds;
  if (report.violation) {
    ++result.violations;
    if (result.first_violations.size() < kShownViolations)
      result.first_violations.push_back({seed, *report.violation});
  }
  if (result.seeds == 1) {
    result.figures = report.figures;
    result.most_at.assign(report.figures.size(), seed);
    result.probes = report.probes;
    return;
  }
  CHECK(report.figures.size() == result.figures.size() && report.probes.size() == result.probes.size());
  for (std::size_t i = 0; i < report.figures.size(); ++i) {
    SimulationFigure& figure = result.figures[i];
    const double value = report.figures[i].value;
    if (figure.fold == SimulationFigure::Fold::kSum) {
      figure.value += value;
    } else if (value > figure.value) {
      figure.value = value;
      result.most_at[i] = seed;
    }
  }
  for (std::size_t i = 0; i < report.probes.size(); ++i) result.probes[i].count += report.probes[i].count;
}

SeedReport run_seed(const SimulateRequest& request, std::uint64_t seed) {
  const std::string context =
      fmt::format("in seed {} of {}; again: {}", seed, request.name, replay_command(request, seed));
  const CheckContext shown(context);
  SeedReport report = request.run_seed(seed, request.trace);
  const bool again = request.twice == Twice::kEverySeed || seed - request.first_seed < kFirstSeedsTwice;
  if (!again || request.trace) return report;
  const SeedReport second = request.run_seed(seed, {});
  if (same(report, second)) return report;
  report.violation = fmt::format("one seed has two histories, of hashes {:016x} and {:016x}",
                                 report.state_hash, second.state_hash);
  return report;
}

// Runs the seeds from `first` on, as many as `reports` has places. The places of
// seeds that were not run stay empty.
void run_block(const run::NodeHost& host, const SimulateRequest& request, std::uint64_t first,
               std::vector<std::optional<SeedReport>>& reports) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  host.compute.run([&](int) {
    while (!stopped) {
      if (request.stop && request.stop()) stopped = true;
      const std::size_t place = next++;
      if (stopped || place >= reports.size()) break;
      reports[place] = run_seed(request, first + place);
    }
  });
}

std::string also(const std::vector<SimulateResult::Violation>& first) {
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 1; i < first.size(); ++i) seeds.push_back(first[i].seed);
  return seeds.empty() ? "" : fmt::format(", {} too", fmt::join(seeds, ", "));
}

}  // namespace

std::vector<SimulationProbe> SimulateResult::unreached() const {
  std::vector<SimulationProbe> none;
  std::ranges::copy_if(probes, std::back_inserter(none),
                       [](const SimulationProbe& probe) { return probe.count == 0; });
  return none;
}

SimulateResult simulate(const run::NodeHost& host, const SimulateRequest& request) {
  const Instant begin = host.clock.now();
  run::Progress progress(host.console, host.clock, "simulate",
                         request.trace ? run::Verbosity::kQuiet : host.verbosity);
  SimulateResult result;
  while (result.seeds < request.seeds && !result.stopped) {
    const std::uint64_t block = kSeedsOfWorker * static_cast<std::uint64_t>(host.compute.workers());
    std::vector<std::optional<SeedReport>> reports(std::min(block, request.seeds - result.seeds));
    run_block(host, request, request.first_seed + result.seeds, reports);
    const std::size_t known = result.first_violations.size();
    for (const std::optional<SeedReport>& report : reports) {
      result.stopped = !report.has_value();
      if (result.stopped) break;
      fold(result, request.first_seed + result.seeds, *report);
    }
    for (std::size_t i = known; i < result.first_violations.size(); ++i) {
      const SimulateResult::Violation& one = result.first_violations[i];
      host.say(
          fmt::format("seed {}: {}\n  again: {}", one.seed, one.what, replay_command(request, one.seed)));
    }
    progress.update({.done = result.seeds,
                     .total = request.seeds,
                     .unit = "seed",
                     .detail = result.violations == 0 ? "" : "some broke"});
  }
  progress.finish();
  result.wall_seconds = (host.clock.now() - begin).seconds();
  return result;
}

std::string replay_command(const SimulateRequest& request, std::uint64_t seed) {
  std::string command = "gossamer simulate " + shell_word(request.name);
  for (const std::string& word : request.words) command += " " + shell_word(word);
  return command + fmt::format(" --seed {} --trace", seed);
}

std::optional<Error> judge(const SimulateRequest& request, const SimulateResult& result) {
  if (result.violations > 0) {
    const SimulateResult::Violation& first = result.first_violations.front();
    return Error{.where = fmt::format("{}, seed {}", request.name, first.seed),
                 .what = fmt::format("{} of {} seeds broke{}", result.violations, result.seeds,
                                     also(result.first_violations)),
                 .got = first.what,
                 .expected = "what src/simulation/watch/invariants.h and the scenario ask for",
                 .fix = replay_command(request, first.seed)};
  }
  const std::vector<SimulationProbe> unreached = result.unreached();
  if (!request.needs_probes || result.seeds < kProbeSeeds || unreached.empty()) return std::nullopt;
  std::vector<std::string> lines;
  for (const SimulationProbe& one : unreached)
    lines.push_back(fmt::format("{} ({})", one.name, one.sentence));
  return Error{.where = request.name,
               .what = fmt::format("no seed has reached {} of {} rare branches", unreached.size(),
                                   result.probes.size()),
               .got = fmt::format("{}", fmt::join(lines, "; ")),
               .expected = fmt::format("each reached within {} seeds", kProbeSeeds),
               .fix = "find faults that lead there, or take away what cannot happen"};
}

std::string to_json(const SimulateRequest& request, const SimulateResult& result) {
  nlohmann::ordered_json figures;
  figures["state_hash"] = fmt::format("{:016x}", result.state_hash);
  for (const SimulationFigure& figure : result.figures) {
    if (figure.fold == SimulationFigure::Fold::kSum) {
      figures[std::string(figure.name)] = static_cast<std::uint64_t>(figure.value);
    } else {
      figures[std::string(figure.name)] = figure.value;
    }
  }
  figures["probes"] = result.probes.size();
  figures["probes_unreached"] = nlohmann::ordered_json::array();
  for (const SimulationProbe& one : result.unreached()) figures["probes_unreached"].push_back(one.name);
  nlohmann::ordered_json json;
  json["scenario"] = request.name;
  json["seeds"] = result.seeds;
  json["violations"] = result.violations;
  json["first_bad_seed"] = nullptr;
  if (result.violations > 0) json["first_bad_seed"] = result.first_violations.front().seed;
  json["virtual_seconds"] = result.virtual_seconds;
  json["wall_seconds"] = result.wall_seconds;
  json["figures"] = std::move(figures);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_text(const SimulateRequest& request, const SimulateResult& result) {
  std::string text =
      fmt::format("{}: {} seeds, {} broke; {} simulated in {}; state hash {:016x}\n", request.name,
                  result.seeds, result.violations, run::human_duration(result.virtual_seconds),
                  run::human_duration(result.wall_seconds), result.state_hash);
  for (std::size_t i = 0; i < result.figures.size(); ++i) {
    const SimulationFigure& figure = result.figures[i];
    text += figure.fold == SimulationFigure::Fold::kSum
                ? fmt::format("  {:<24} {}\n", figure.name,
                              run::human_count(static_cast<std::uint64_t>(figure.value)))
                : fmt::format("  {:<24} {:.4g}, in seed {}\n", figure.name, figure.value, result.most_at[i]);
  }
  const std::vector<SimulationProbe> unreached = result.unreached();
  text += fmt::format("  {:<24} {} of {} reached", "rare branches", result.probes.size() - unreached.size(),
                      result.probes.size());
  // A probe that few seeds do not reach says nothing.
  if (!unreached.empty() && result.seeds >= kProbeSeeds) {
    std::vector<std::string_view> names;
    for (const SimulationProbe& one : unreached) names.push_back(one.name);
    text += fmt::format("; not: {}", fmt::join(names, ", "));
  }
  return text + "\n";
}

}  // namespace gossamer::commands
