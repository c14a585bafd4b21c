// SPDX-License-Identifier: Apache-2.0
//
// gossamer coordinator: leads a run that others join.
#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "apps/cli/network_wait.h"
#include "base/shell_word.h"
#include "commands/engine/config_words.h"
#include "commands/engine/engine_list.h"
#include "commands/engine/run_request.h"
#include "commands/lead.h"
#include "commands/run/train_run.h"
#include "host/posix/route.h"
#include "host/posix/signals.h"
#include "node/coordinator_node.h"
#include "node/places.h"
#include "run/lead_file.h"

namespace gossamer::cli {
namespace {

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
  std::string first;
  std::string certificates;
  bool resume = false;
};

// Engines whose runs have nothing but keys are led by their names.
bool is_led_by_name(const commands::EngineEntry& engine) { return engine.workload != nullptr; }

std::vector<std::string_view> led_by_name(const commands::EngineList& engines) {
  std::vector<std::string_view> names;
  for (const commands::EngineEntry& engine : engines.all()) {
    if (is_led_by_name(engine)) names.push_back(engine.name);
  }
  return names;
}

Parser make_coordinator_parser(const commands::EngineList& engines, const Command& self,
                               CoordinatorFlags& flags) {
  constexpr std::size_t kWidth = 16;
  std::string footer;
  for (const commands::EngineEntry& engine : engines.all()) {
    if (!is_led_by_name(engine)) continue;
    footer += fmt::format("Keys of {}, which {}:\n{}\n", engine.name, engine.help,
                          settings::help_lines(engine.keys->defaults(), kWidth));
  }
  Parser parser({self.name, self.help, footer + std::string(self.example)});
  parser
      .add_option("CONFIG", flags.config,
                  fmt::format("what the run does: {}, or what 'train' takes: a preset or a TOML file; with "
                              "--resume what the run in DIR does",
                              fmt::join(led_by_name(engines), ", ")))
      .type_name("");
  parser.add_option("KEYS", flags.settings, "key=value: keys of that config").type_name("");
  parser
      .add_option("--listen", flags.listen,
                  "where members come, and to the next port too; port 0 takes free ones")
      .type_name("HOST:PORT");
  parser.add_option("--out", flags.out, "directory of the run, missing or empty").required().type_name("DIR");
  parser
      .add_option("--store", flags.store,
                  "sqlite:FILE (default: in DIR) or etcd:URL,...[,ca=FILE][,login=FILE]")
      .type_name("STORE");
  parser.add_option("--advertise", flags.advertise, "name or address under which members reach this machine")
      .type_name("NAME");
  parser.add_option("--standby", flags.standbys, "other coordinators of the run").type_name("HOST:PORT");
  parser.add_flag("--resume", flags.resume, "lead the run in DIR again, or start one if there is none");
  parser.add_option("--first", flags.first, "members that must have come before work begins; default 1")
      .type_name("N");
  parser
      .add_option(
          "--certificates", flags.certificates,
          "how long a node's certificate holds, and so how long it may be away; default 7d, with --resume "
          "as before")
      .type_name("TIME");
  add_report(parser, flags.report);
  add_quiet(parser, flags.common);
  return parser;
}

// The user's flags, on top of the directory's run. A store may have moved. An empty
// one is noticed when it is loaded.
Result<run::LeadFile> merged(run::LeadFile file, const CoordinatorFlags& flags) {
  if (!flags.store.empty()) file.store = flags.store;
  if (!flags.standbys.empty()) file.standbys = flags.standbys;
  const auto first = parse_count(flags.first.empty() ? fmt::format("{}", file.first) : flags.first,
                                 {.flag = "--first", .min = 1, .max = kMostMembers});
  if (!first.ok()) return first.error();
  file.first = *first;
  if (!flags.certificates.empty()) {
    const auto seconds = parse_seconds(flags.certificates, "--certificates");
    if (!seconds.ok()) return seconds.error();
    file.certificate_seconds = static_cast<std::uint64_t>(*seconds);
  }
  return file;
}

Result<node::CoordinatorOptions> coordinator_options(Context& context, const CoordinatorFlags& flags,
                                                     const run::LeadFile& file) {
  auto state = state_directory();
  if (!state.ok()) return state.error();
  node::CoordinatorOptions options;
  options.directory = absolute_path(flags.out);
  options.state = *state;
  options.resume = flags.resume;
  if (!flags.advertise.empty()) {
    auto advertise = parse_host(flags.advertise, "--advertise");
    if (!advertise.ok()) return advertise.error();
    options.advertise = *advertise;
  }
  options.store = file.store;
  options.program = program_name();
  const auto report = report_options(context, flags.report);
  if (!report.ok()) return report.error();
  options.report = *report;
  if (file.certificate_seconds)
    options.certificate_seconds = static_cast<std::int64_t>(*file.certificate_seconds);
  if (!flags.listen.empty()) {
    auto listen = parse_at(flags.listen, "--listen");
    if (!listen.ok()) return listen.error();
    options.listen = *listen;
  }
  for (const std::string& text : file.standbys) {
    auto standby = parse_at(text, "--standby");
    if (!standby.ok()) return standby.error();
    options.standbys.push_back(*standby);
  }
  options.first_members = file.first;
  options.file = file;
  return options;
}

// A run that is led on may be started before its machine has the address where it listens.
void wait_for_address(Context& context, const node::CoordinatorOptions& options,
                      const std::function<bool()>& stop) {
  if (!options.resume) return;
  const auto own = node::chosen_address(context.disk, options);
  if (!own.ok() || !own->control) return;  // start() says what is wrong
  const std::string& host = own->control->host;
  const auto there = [&]() -> Result<void> {
    if (host::has_address(host)) return {};
    return Error{.where = "--listen", .what = "this machine does not have the address yet", .got = host};
  };
  static_cast<void>(wait_for_network(context, there, stop));  // start() says why it cannot listen
}

// Prints the line with which nodes join. It has no token for nodes that have joined before.
Result<void> print_join_line(Context& context, const host::Endpoint& at, const std::string& token) {
  std::string line = "gossamer join " + host::to_string(at);
  if (!token.empty()) line += " --token " + token;
  context.output.line(line);
  return context.output.flush();
}

// The command that leads the run in DIR again, with the flags that DIR does not keep.
std::string resume_command(const CoordinatorFlags& flags) {
  std::string command = fmt::format("gossamer coordinator --resume --out {}", shell_word(flags.out));
  if (!flags.common.threads.empty()) command += fmt::format(" --threads {}", flags.common.threads);
  return command + report_words(flags.report);
}

// CONFIG of a run that goes on: the engine that the lead's file names, where its runs have nothing but keys.
// Empty for a training run, whose config is in its run.toml.
Result<std::string> config_before(Context& context, const CoordinatorFlags& flags) {
  const auto file = run::read_lead_file(context.disk, flags.out);
  if (!file.ok()) return file.error();
  const commands::EngineEntry* const engine = context.engines.find(file->engine);
  return engine != nullptr && is_led_by_name(*engine) ? file->engine : std::string();
}

Result<ExitStatus> lead_by_name(Context& context, const CoordinatorFlags& flags,
                                const commands::EngineEntry& engine) {
  auto kept = flags.resume
                  ? commands::KeyedLead::kept(context.disk, context.engines.in_runs(engine), flags.out)
                  : run::LeadFile();
  if (!kept.ok()) return kept.error();
  const auto file = merged(*std::move(kept), flags);
  if (!file.ok()) return file.error();
  CommonFlags own = flags.common;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  auto options = coordinator_options(context, flags, *file);
  if (!options.ok()) return options.error();
  const host::PosixSignals signals;
  const auto stop = [&signals] { return signals.stop_requested(); };
  wait_for_address(context, *options, stop);
  if (stop()) return 128 + signals.signal_number();
  const run::NodeHost host = (*machine).host();
  auto lead = commands::KeyedLead::start(
      host,
      {.engine = engine, .words = flags.settings, .directory = flags.out, .options = *std::move(options)});
  if (!lead.ok()) return lead.error();
  const auto token = (*lead)->first_token();
  if (!token.ok()) return token.error();
  node::CoordinatorNode& node = (*lead)->node();
  if (auto told = print_join_line(context, node.address(), *token); !told.ok()) return told.error();
  if (auto done = node.run([&signals] { return signals.stop_requested(); }); !done.ok()) return done.error();
  if (signals.stop_requested()) host.say("lead the run on with: " + resume_command(flags));
  return signals.stop_requested() ? 128 + signals.signal_number() : 0;
}

// Reads the config that the user wrote, as 'train' does. A run that goes on has its own.
Result<commands::ChosenConfig> chosen_config(Context& context, const CoordinatorFlags& flags) {
  if (flags.config.empty())
    return commands::config_of_run(context.disk, context.engines, flags.out,
                                   {.config = "", .overrides = flags.settings});
  auto chosen = commands::choose_config(
      context.disk, context.engines,
      {.config = flags.config, .overrides = flags.settings, .other_words = led_by_name(context.engines)});
  if (!chosen.ok()) return chosen;
  // Without CONFIG the values are not those of the run.
  const bool whole = !flags.config.empty();
  if (auto done = whole ? chosen->engine.check(chosen->values) : Result<void>(); !done.ok())
    return done.error();
  return chosen;
}

// The options of a lead. The coordinator's own directory lies in the run's directory.
Result<node::CoordinatorOptions> lead_options(Context& context, CoordinatorFlags flags) {
  if (!flags.standbys.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--standby",
                 .what = "a training run has one coordinator, which has its data",
                 .expected = "no --standby",
                 .fix = "after a crash lead on with --resume, on this machine"};
  }
  flags.out = node::lead_directory(flags.out);
  auto kept = flags.resume ? run::read_lead_file(context.disk, flags.out) : run::LeadFile();
  if (!kept.ok()) return kept.error();
  const auto file = merged(*std::move(kept), flags);
  if (!file.ok()) return file.error();
  return coordinator_options(context, flags, *file);
}

Result<ExitStatus> lead_training(Context& context, const CoordinatorFlags& flags) {
  const host::PosixSignals signals;
  const auto stop = [&signals] { return signals.stop_requested(); };
  const auto chosen = chosen_config(context, flags);
  if (!chosen.ok()) return chosen.error();
  const auto able =
      context.engines.ability(chosen->engine, &commands::EngineEntry::prepare, "trains", "CONFIG");
  if (!able.ok()) return able.error();
  auto options = lead_options(context, flags);
  if (!options.ok()) return options.error();
  wait_for_address(context, *options, stop);
  if (stop()) return 128 + signals.signal_number();
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const commands::RunRequest request{
      .directory = absolute_path(flags.out),
      .resume = flags.resume ? run::Continue::kResume : run::Continue::kNo,
      .engine = context.engines.in_runs(chosen->engine),
      .config = chosen->values,
      .settings = chosen->settings,
      .stop_requested = stop,
      .lead = commands::LeadOptions{.lead = *std::move(options),
                                    .leads =
                                        [&context](const host::Endpoint& at, const std::string& token) {
                                          return print_join_line(context, at, token);
                                        }},
      .resume_command = resume_command(flags),
      .model_patience = commands::kModelPatience};
  const auto result = commands::run_training((*machine).host(), chosen->engine, request);
  if (!result.ok()) return result.error();
  if (result->stopped) return signals.stop_requested() ? 128 + signals.signal_number() : 0;
  if (flags.common.quiet && !result->figures.empty()) context.output.line(result->figures);
  context.output.line(model_line(chosen->engine, request.directory));
  return 0;
}

Result<ExitStatus> run_coordinator(Context& context, const Command& self,
                                   std::span<const std::string> arguments) {
  CoordinatorFlags flags;
  auto parser = make_coordinator_parser(context.engines, self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  if (flags.resume && flags.config.find('=') != std::string::npos)
    flags.settings.insert(flags.settings.begin(), std::exchange(flags.config, ""));
  if (flags.config.empty() && flags.resume) {
    auto before = config_before(context, flags);
    if (!before.ok()) return before.error();
    flags.config = *std::move(before);
  } else if (flags.config.empty()) {
    return Error{
        .kind = ErrorKind::kUsage,
        .what = "CONFIG is missing",
        .expected = "what the run does: an engine such as check, a preset such as xmc, or a TOML file",
        .fix = "gossamer coordinator xmc data.train=FILE --listen HOST:PORT --out DIR"};
  }
  const commands::EngineEntry* const named = context.engines.find(flags.config);
  const bool by_name = named != nullptr && is_led_by_name(*named);
  return by_name ? lead_by_name(context, flags, *named) : lead_training(context, flags);
}

}  // namespace

Command coordinator_command() {
  return {.name = "coordinator",
          .help = "leads a run that other machines join; prints the line with which they do",
          .example =
              "Members need no files: they get the data from here and from each other, and the model is put\n"
              "together in --out. They go on without the coordinator for ten minutes: after Ctrl-C, a crash "
              "or a reboot lead on with\n"
              "--resume. 'gossamer stop' ends the run; one that trains goes on with --resume from where it "
              "stopped,\n"
              "with any machines.\n\n"
              "Example:\n"
              "  gossamer coordinator xmc data.train=train.txt.gz --listen 10.0.0.1:7070 --first 3 --out "
              "runs/many\n"
              "  gossamer coordinator check --listen 10.0.0.1:7070 --out runs/fleet\n"
              "  gossamer coordinator --resume --out runs/fleet",
          .run = run_coordinator};
}

}  // namespace gossamer::cli
