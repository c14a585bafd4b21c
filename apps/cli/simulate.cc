// SPDX-License-Identifier: Apache-2.0
//
// gossamer simulate: fleets under faults in virtual time, many seeds of one scenario.
#include "commands/simulate/simulate.h"

#include <fmt/format.h>

#include <limits>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/simulate/scenario_file.h"
#include "host/api/files.h"
#include "host/posix/signals.h"

namespace gossamer::cli {
namespace {

constexpr std::uint64_t kMostSeeds = 1'000'000'000;

struct SimulateFlags {
  CommonFlags common;
  std::string scenario;
  std::vector<std::string> words;
  std::string seed;
  std::string seeds;
  bool check = false;
  bool trace = false;
};

Parser make_simulate_parser(const Command& self, SimulateFlags& flags) {
  std::string footer = "Presets:\n";
  for (const commands::SimulationPreset& preset : commands::simulation_presets())
    footer += fmt::format("  {:<26} {}\n", preset.name, preset.help);
  for (const commands::SimulationPreset& preset : commands::simulation_presets())
    footer += fmt::format("\nKeys and defaults of {}:\n{}", preset.name, preset.keys_help());
  Parser parser({self.name, self.help, fmt::format("{}\n{}", footer, self.example)});
  parser.add_option("SCENARIO", flags.scenario, "a preset, or a .toml file (docs/protocols/scenario.md)")
      .required()
      .type_name("");
  parser.add_option("KEYS", flags.words, "key=value: what to change").type_name("");
  parser.add_option("--seed", flags.seed, "the first seed; default 1").type_name("N");
  parser
      .add_option("--seeds", flags.seeds,
                  "how many; default 100, or 1 where --seed is given and of sparse-steps")
      .type_name("N");
  parser.add_flag("--check", flags.check, "run every seed twice, not only the first two");
  parser.add_flag("--trace", flags.trace, "of one seed: what happens, line by line");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "one JSON object; what --trace shows goes to standard error");
  add_quiet(parser, flags.common);
  return parser;
}

// The scenario with everything that was said on the command line.
Result<commands::Scenario> read_scenario(Context& context, const SimulateFlags& flags) {
  commands::Scenario scenario;
  if (flags.scenario.ends_with(".toml")) {
    auto text = host::read_text(context.disk, flags.scenario, std::size_t{1} << 20);
    if (!text.ok()) return text.error();
    auto read = commands::parse_scenario(*text, flags.scenario);
    if (!read.ok()) return read.error();
    scenario = std::move(*read);
  } else {
    scenario.preset = flags.scenario;
  }
  for (const std::string& word : flags.words) {
    auto setting = commands::parse_setting(word);
    if (!setting.ok()) return setting.error();
    scenario.settings.push_back(std::move(*setting));
  }
  return scenario;
}

Result<void> set_seeds(const SimulateFlags& flags, std::uint64_t standard,
                       commands::SimulateRequest& request) {
  if (!flags.seed.empty()) {
    auto seed = parse_count(flags.seed, {.flag = "--seed", .min = 0, .max = std::uint64_t{1} << 62});
    if (!seed.ok()) return seed.error();
    request.first_seed = *seed;
  }
  request.seeds = flags.seed.empty() && !flags.trace ? standard : 1;
  if (!flags.seeds.empty()) {
    auto seeds = parse_count(flags.seeds, {.flag = "--seeds", .min = 1, .max = kMostSeeds});
    if (!seeds.ok()) return seeds.error();
    request.seeds = *seeds;
  }
  if (!flags.trace || request.seeds == 1) return {};
  return Error{.kind = ErrorKind::kUsage,
               .where = "--trace",
               .what = "cannot show so many seeds at once",
               .got = fmt::format("{} seeds", request.seeds),
               .expected = "one seed",
               .fix = "leave --seeds away and name the seed: --seed N"};
}

commands::SimulationTrace trace_to(Context& context, bool results_are_json) {
  return [&context, results_are_json](double seconds, const std::string& who, const std::string& what) {
    const std::string line = fmt::format("{:9.3f} {:<6} {}", seconds, who, what);
    if (results_are_json) {
      context.console.write(line + "\n");
    } else {
      context.output.line(line);
    }
  };
}

Result<ExitStatus> simulate(Context& context, const SimulateFlags& flags) {
  auto scenario = read_scenario(context, flags);
  if (!scenario.ok()) return scenario.error();
  auto preset = commands::find_simulation(scenario->preset, "");
  if (!preset.ok()) return preset.error();
  for (const settings::KeySetting& setting : scenario->settings) {
    if (setting.name == "break" && setting.text == "list")
      return context.output.write((*preset)->defects_help()), 0;
  }
  auto run_seed = (*preset)->prepare(*scenario);
  if (!run_seed.ok()) return run_seed.error();

  const host::PosixSignals signals;
  commands::SimulateRequest request{.name = flags.scenario, .words = flags.words, .run_seed = *run_seed};
  if (auto done = set_seeds(flags, (*preset)->seeds, request); !done.ok()) return done.error();
  request.twice = flags.check ? commands::Twice::kEverySeed : commands::Twice::kFirstSeeds;
  request.needs_probes = scenario->settings.empty() && scenario->faults.empty();
  request.stop = [&signals] { return signals.stop_requested(); };
  if (flags.trace) request.trace = trace_to(context, flags.common.json);

  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  const commands::SimulateResult result = commands::simulate(host, request);
  if (result.stopped) {
    host.say(fmt::format("stopped after {} of {} seeds, {} broke", result.seeds, request.seeds,
                         result.violations));
    if (result.violations > 0) return *commands::judge(request, result);
    return 128 + signals.signal_number();
  }
  context.output.write(flags.common.json ? commands::to_json(request, result) + "\n"
                                         : commands::to_text(request, result));
  if (auto failed = commands::judge(request, result)) return *failed;
  return 0;
}

Result<ExitStatus> run_simulate(Context& context, const Command& self,
                                std::span<const std::string> arguments) {
  SimulateFlags flags;
  auto parser = make_simulate_parser(self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  return simulate(context, flags);
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .help = "deterministic simulation of a fleet under faults, in virtual time",
          .example =
              "One seed is one history. A seed that breaks an invariant is named with the command that\n"
              "replays it; exit status 1.\n\n"
              "Example:\n"
              "  gossamer simulate cluster-chaos --seeds 1000\n"
              "  gossamer simulate cluster-chaos break=stale-lease --seeds 200\n"
              "  gossamer simulate sparse-chaos copies=2 kinds=kill,drain --seeds 200\n"
              "  gossamer simulate sparse-steps members=16 rate_mbps=100 rtt_ms=50 compute_ms=8 --json\n"
              "  gossamer simulate cluster-chaos members=6 kinds=cut,kill-coordinator --seed 17 --trace",
          .run = run_simulate};
}

}  // namespace gossamer::cli
