// SPDX-License-Identifier: Apache-2.0
//
// gossamer coordinator: leads a run that others join.
#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/flat_toml.h"
#include "apps/cli/machine.h"
#include "engines/check/check_config.h"
#include "engines/check/check_workload.h"
#include "host/api/files.h"
#include "host/posix/signals.h"
#include "node/cluster/coordinator_node.h"

namespace gossamer::cli {
namespace {

constexpr std::string_view kCheck = "check";
constexpr std::uint64_t kMostMembers = 100'000;

struct CoordinatorFlags {
  CommonFlags common;
  ReportFlags report;
  std::string config;
  std::vector<std::string> settings;
  std::string listen;
  std::string out;
  std::string store;
  std::string advertise;
  std::vector<std::string> standbys;
  std::string first = "1";
  bool resume = false;
};

std::unique_ptr<CLI::App> make_coordinator_parser(const Command& self, CoordinatorFlags& flags) {
  auto parser = make_parser({self.name, self.help,
                             fmt::format("Keys of check, which shows that a fleet works:\n{}\n{}",
                                         engine::check_config_help(), self.example)});
  parser->add_option("CONFIG", flags.config, "what the run does: check")->required()->type_name("");
  parser->add_option("KEYS", flags.settings, "key=value: keys of that config")->type_name("");
  parser
      ->add_option("--listen", flags.listen,
                   "where members come, and to the next port too; port 0 takes free ones")
      ->type_name("HOST:PORT");
  parser->add_option("--out", flags.out, "directory of the run, missing or empty")
      ->required()
      ->type_name("DIR");
  parser->add_option("--store", flags.store, "sqlite:FILE (default: in DIR) or etcd:URL,...")
      ->type_name("STORE");
  parser->add_option("--advertise", flags.advertise, "name or address under which members reach this machine")
      ->type_name("NAME");
  parser->add_option("--standby", flags.standbys, "other coordinators of the run")->type_name("HOST:PORT");
  parser->add_flag("--resume", flags.resume, "lead the run in DIR again, or start one if there is none");
  parser->add_option("--first", flags.first, "members that must have come before work begins; default 1")
      ->type_name("N");
  add_report(*parser, flags.report);
  add_quiet(*parser, flags.common);
  return parser;
}

std::string run_toml(const engine::CheckConfig& config) {
  return fmt::format("engine = \"{}\"\nthings = {}\nelements = {}\npause_ms = {}\nsteps = {}\n", kCheck,
                     config.things, config.elements, config.pause_ms, config.steps);
}

// What the user wrote, on top of what the directory's run has already.
Result<engine::CheckConfig> check_config(Context& context, const CoordinatorFlags& flags) {
  const std::string path = flags.out + "/run.toml";
  const auto there = context.disk.exists(path);
  if (!flags.resume || !there.ok() || !*there) return engine::parse_check_config(flags.settings);
  const auto text = host::read_text(context.disk, path, std::size_t{1} << 20);
  if (!text.ok()) return text.error();
  auto kept = parse_flat_toml(*text, path);
  if (!kept.ok()) return kept.error();
  std::vector<std::string> settings = std::move(*kept);
  std::erase(settings, fmt::format("engine={}", kCheck));
  const auto before = engine::parse_check_config(settings);
  if (!before.ok()) return before.error();
  const std::string expected = fmt::format("{}", fmt::join(settings, " "));
  settings.insert(settings.end(), flags.settings.begin(), flags.settings.end());
  const auto wanted = engine::parse_check_config(settings);
  if (wanted.ok() && *wanted != *before) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = path,
                 .what = "the run in this directory has other keys",
                 .got = fmt::format("{}", fmt::join(flags.settings, " ")),
                 .expected = expected,
                 .fix = "leave the keys out, or start a new run in another directory"};
  }
  return wanted;
}

Result<node::CoordinatorOptions> coordinator_options(Context& context, const CoordinatorFlags& flags) {
  auto state = state_directory();
  if (!state.ok()) return state.error();
  node::CoordinatorOptions options;
  options.directory = absolute_path(flags.out);
  options.state = *state;
  options.resume = flags.resume;
  options.advertise = flags.advertise;
  options.store = flags.store;
  options.program = program_name();
  const auto log = log_options(context, flags.report);
  if (!log.ok()) return log.error();
  options.log = *log;
  const auto metrics = metrics_endpoint(flags.report);
  if (!metrics.ok()) return metrics.error();
  options.metrics = *metrics;
  if (!flags.listen.empty()) {
    auto listen = parse_at(flags.listen, "--listen");
    if (!listen.ok()) return listen.error();
    options.listen = *listen;
  }
  for (const std::string& text : flags.standbys) {
    auto standby = parse_at(text, "--standby");
    if (!standby.ok()) return standby.error();
    options.standbys.push_back(*standby);
  }
  const auto first = parse_count(flags.first, {.flag = "--first", .min = 1, .max = kMostMembers});
  if (!first.ok()) return first.error();
  options.first_members = *first;
  return options;
}

Result<ExitStatus> lead(Context& context, const CoordinatorFlags& flags) {
  if (flags.config != kCheck) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "CONFIG",
                 .what = fmt::format("there is no cluster run '{}'", flags.config),
                 .expected = "check",
                 .fix = "'gossamer train' trains on this machine; what clusters do is in --help"};
  }
  auto options = coordinator_options(context, flags);
  if (!options.ok()) return options.error();
  const auto config = check_config(context, flags);
  if (!config.ok()) return config.error();
  engine::CheckWorkload workload(*config);
  options->configuration = engine::check_config_bytes(*config);
  options->run_toml = run_toml(*config);
  options->tracks = workload.tracks();

  CommonFlags own = flags.common;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  const host::PosixSignals signals;
  auto node = node::CoordinatorNode::start((*machine).host(), std::move(*options), workload);
  if (!node.ok()) return node.error();
  const auto token = (*node)->new_token("printed at the start");
  if (!token.ok()) return token.error();
  context.output.line(
      fmt::format("gossamer join {} --token {}", host::to_string((*node)->address()), *token));
  if (auto flushed = context.output.flush(); !flushed.ok()) return flushed.error();
  if (auto done = (*node)->run(signals); !done.ok()) return done.error();
  return signals.stop_requested() ? 128 + signals.signal_number() : 0;
}

Result<ExitStatus> run(Context& context, const Command& self, std::span<const std::string> arguments) {
  CoordinatorFlags flags;
  auto parser = make_coordinator_parser(self, flags);
  auto parsed = parse(*parser, arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(help_text(*parser)), 0;
  return lead(context, flags);
}

}  // namespace

Command coordinator_command() {
  return {.name = "coordinator",
          .help = "leads a run that other machines join; prints the line with which they do",
          .example =
              "Members go on without it for ten minutes: after Ctrl-C, a crash or a reboot lead on with\n"
              "--resume. 'gossamer stop' ends the run.\n\n"
              "Example:\n"
              "  gossamer coordinator check --listen 10.0.0.1:7070 --out runs/fleet\n"
              "  gossamer coordinator check --resume --out runs/fleet",
          .run = run};
}

}  // namespace gossamer::cli
