// SPDX-License-Identifier: Apache-2.0
//
// gossamer coordinator: leads a run that others join.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <sstream>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "apps/cli/train_settings.h"
#include "commands/train/train_run.h"
#include "commands/train_fleet/lead_runner.h"
#include "commands/train_fleet/member_job.h"
#include "engines/check/check_config.h"
#include "engines/check/check_workload.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "host/api/files.h"
#include "host/posix/signals.h"
#include "node/coordinator_node.h"
#include "node/run_configuration.h"
#include "node/supply_companion.h"
#include "settings/toml.h"

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
  bool resume = false;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, ',');) parts.push_back(part);
  return parts;
}

Parser make_coordinator_parser(const Command& self, CoordinatorFlags& flags) {
  Parser parser({self.name, self.help,
                 fmt::format("Keys of check, which shows that a fleet works:\n{}\n{}",
                             check::check_config_help(), self.example)});
  parser
      .add_option("CONFIG", flags.config,
                  "what the run does: check, or what 'train' takes: a preset or a TOML file")
      .required()
      .type_name("");
  parser.add_option("KEYS", flags.settings, "key=value: keys of that config").type_name("");
  parser
      .add_option("--listen", flags.listen,
                  "where members come, and to the next port too; port 0 takes free ones")
      .type_name("HOST:PORT");
  parser.add_option("--out", flags.out, "directory of the run, missing or empty").required().type_name("DIR");
  parser.add_option("--store", flags.store, "sqlite:FILE (default: in DIR) or etcd:URL,...")
      .type_name("STORE");
  parser.add_option("--advertise", flags.advertise, "name or address under which members reach this machine")
      .type_name("NAME");
  parser.add_option("--standby", flags.standbys, "other coordinators of the run").type_name("HOST:PORT");
  parser.add_flag("--resume", flags.resume, "lead the run in DIR again, or start one if there is none");
  parser.add_option("--first", flags.first, "members that must have come before work begins; default 1")
      .type_name("N");
  add_report(parser, flags.report);
  add_quiet(parser, flags.common);
  return parser;
}

// The part of a run that its run.toml keeps, for people and for --resume.
struct RunFile {
  std::string engine = {};                 // empty: there is no run yet
  std::vector<std::string> settings = {};  // of the config: key=value
  std::string first = "1";
  std::string store = {};
  std::vector<std::string> standbys = {};
};

// A text in quotes. A text of JSON is a text of TOML too.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// `keys` has the lines that say what the run does.
std::string to_toml(std::string_view engine, const RunFile& run, const std::string& keys) {
  return fmt::format("engine = \"{}\"\n{}first = {}\nstore = {}\nstandby = {}\n", engine, keys, run.first,
                     quoted(run.store), quoted(fmt::format("{}", fmt::join(run.standbys, ","))));
}

Error unreadable_run_file(std::string where, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = "cannot read the run's keys",
          .got = std::move(got),
          .expected = "key = value, with a text or a whole number",
          .fix = "restore the file, or start a new run in another directory"};
}

// The settings of a run.toml that has no sections.
Result<std::vector<settings::KeySetting>> run_settings(std::string_view text, std::string_view file) {
  const auto table = settings::parse_toml(text, file);
  if (!table.ok()) return unreadable_run_file(table.error().where, table.error().got);
  std::vector<settings::KeySetting> kept;
  for (const settings::TomlEntry& entry : *table) {
    const auto* word = entry.value.as<std::string>();
    const auto* number = entry.value.as<std::int64_t>();
    if (word == nullptr && number == nullptr)
      return unreadable_run_file(entry.value.where, "another kind of value for " + entry.name);
    kept.push_back({entry.name, word != nullptr ? *word : std::to_string(*number), entry.value.where});
  }
  return kept;
}

// As it stands in the directory of a run that is resumed; defaults where there is none.
Result<RunFile> read_run_file(Context& context, const CoordinatorFlags& flags) {
  RunFile run;
  const std::string path = flags.out + "/run.toml";
  const auto there = context.disk.exists(path);
  if (!flags.resume || !there.ok() || !*there) return run;
  const auto text = host::read_text(context.disk, path, std::size_t{1} << 20);
  if (!text.ok()) return text.error();
  const auto kept = run_settings(*text, path);
  if (!kept.ok()) return kept.error();
  for (const auto& [key, value, where] : *kept) {
    if (key == "first") {
      run.first = value;
    } else if (key == "store") {
      run.store = value;
    } else if (key == "standby") {
      run.standbys = split_list(value);
    } else if (key == "engine") {
      run.engine = value;
    } else {
      run.settings.push_back(key + "=" + value);
    }
  }
  return run;
}

Error other_than_kept(const std::string& path, std::string got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = path,
          .what = "the run in this directory has other keys",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "leave the keys out, or start a new run in another directory"};
}

// The user's flags, on top of the directory's run. A store may have moved. An empty
// one is noticed when it is loaded.
RunFile merged(RunFile run, const CoordinatorFlags& flags) {
  if (!flags.store.empty()) run.store = flags.store;
  if (!flags.first.empty()) run.first = flags.first;
  if (!flags.standbys.empty()) run.standbys = flags.standbys;
  return run;
}

Result<check::CheckConfig> check_config(const RunFile& run, const CoordinatorFlags& flags) {
  if (run.settings.empty()) return check::parse_check_config(flags.settings);
  const auto before = check::parse_check_config(run.settings);
  if (!before.ok()) return before.error();
  std::vector<std::string> settings = run.settings;
  settings.insert(settings.end(), flags.settings.begin(), flags.settings.end());
  const auto wanted = check::parse_check_config(settings);
  if (wanted.ok() && *wanted != *before) {
    return other_than_kept(flags.out + "/run.toml", fmt::format("{}", fmt::join(flags.settings, " ")),
                           fmt::format("{}", fmt::join(run.settings, " ")));
  }
  return wanted;
}

Result<node::CoordinatorOptions> coordinator_options(Context& context, const CoordinatorFlags& flags,
                                                     const RunFile& run) {
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
  options.store = run.store;
  options.program = program_name();
  const auto report = report_options(context, flags.report);
  if (!report.ok()) return report.error();
  options.report = *report;
  if (!flags.listen.empty()) {
    auto listen = parse_at(flags.listen, "--listen");
    if (!listen.ok()) return listen.error();
    options.listen = *listen;
  }
  for (const std::string& text : run.standbys) {
    auto standby = parse_at(text, "--standby");
    if (!standby.ok()) return standby.error();
    options.standbys.push_back(*standby);
  }
  const auto first = parse_count(run.first, {.flag = "--first", .min = 1, .max = kMostMembers});
  if (!first.ok()) return first.error();
  options.first_members = *first;
  return options;
}

// What a coordinator leads.
struct Led {
  std::unique_ptr<cluster::Workload> workload;
  std::vector<cluster::TrackId> tracks;
  std::string_view engine;
  std::optional<node::Supply> supply = {};
  std::string configuration;  // for the members' engine
  std::string keys;           // lines of run.toml
  node::MakeCompanion make_companion = {};
};

Result<Led> lead_check(const CoordinatorFlags& flags, const RunFile& run) {
  const auto config = check_config(run, flags);
  if (!config.ok()) return config.error();
  auto workload = std::make_unique<check::CheckWorkload>(*config);
  auto tracks = workload->tracks();
  std::string lines;
  for (const settings::Key& key : check::check_keys().all())
    lines += fmt::format("{} = {}\n", key.name, check::check_keys().get(*config, key));
  return Led{.workload = std::move(workload),
             .tracks = std::move(tracks),
             .engine = kCheckEngine,
             .configuration = check::check_config_bytes(*config),
             .keys = std::move(lines)};
}

// Whether the config is a run.toml that 'train --nodes' has prepared. That process
// trains with what members deliver.
bool is_prepared(const CoordinatorFlags& flags) { return flags.config.ends_with("/run.toml"); }

// Leads a prepared run. All of its keys stand in its file.
Result<Led> lead_sparse(const run::NodeHost& host, const CoordinatorFlags& flags, const RunFile& run) {
  if (!flags.settings.empty()) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "KEYS",
                 .what = "a prepared run has all of its keys",
                 .got = flags.settings.front(),
                 .expected = "no key beside " + flags.config,
                 .fix = "give keys to 'gossamer train --nodes'"};
  }
  const auto first = parse_count(run.first, {.flag = "--first", .min = 1, .max = kMostMembers});
  if (!first.ok()) return first.error();
  auto lead = commands::prepare_lead(host, host::parent(absolute_path(flags.config)), *first);
  if (!lead.ok()) return lead.error();
  auto workload = std::make_unique<sparse_engine::FleetWorkload>(lead->shape, lead->workload);
  auto tracks = workload->tracks();
  auto configuration = commands::fleet_configuration_bytes(lead->configuration);
  return Led{.workload = std::move(workload),
             .tracks = std::move(tracks),
             .engine = kSparseEngine,
             .supply = lead->supply,
             .configuration = std::move(configuration),
             .keys = {},
             .make_companion = [&host, supply = lead->supply](const node::Aside& aside, const node::Post&) {
               return std::make_unique<node::SupplyCompanion>(host.disk, supply, aside, nullptr,
                                                              host.clock.now());
             }};
}

Result<Led> choose_led(const run::NodeHost& host, const CoordinatorFlags& flags, const RunFile& run) {
  auto led = flags.config == kCheckEngine ? lead_check(flags, run) : lead_sparse(host, flags, run);
  if (!led.ok() || run.engine.empty() || run.engine == led->engine) return led;
  return other_than_kept(flags.out + "/run.toml", flags.config, "a run of " + run.engine);
}

// Prints the line with which nodes join. It has no token for nodes that have joined before.
Result<void> print_join_line(Context& context, const node::CoordinatorNode& lead, const std::string& token) {
  std::string line = "gossamer join " + host::to_string(lead.address());
  if (!token.empty()) line += " --token " + token;
  context.output.line(line);
  return context.output.flush();
}

Result<ExitStatus> lead(Context& context, const CoordinatorFlags& flags) {
  auto kept = read_run_file(context, flags);
  if (!kept.ok()) return kept.error();
  const RunFile run = merged(*std::move(kept), flags);
  CommonFlags own = flags.common;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  auto led = choose_led(host, flags, run);
  if (!led.ok()) return led.error();
  auto options = coordinator_options(context, flags, run);
  if (!options.ok()) return options.error();
  options->configuration = node::run_configuration_bytes({.engine = std::string(led->engine),
                                                          .program = program_name(),
                                                          .supply = std::move(led->supply),
                                                          .own = std::move(led->configuration)});
  options->run_toml = to_toml(led->engine, run, led->keys);
  options->tracks = std::move(led->tracks);
  options->make_companion = std::move(led->make_companion);

  const host::PosixSignals signals;
  auto node = node::CoordinatorNode::start(host, std::move(*options), *led->workload);
  if (!node.ok()) return node.error();
  std::string token;
  if ((*node)->new_run()) {
    auto made = (*node)->new_token("printed at the start");
    if (!made.ok()) return made.error();
    token = *std::move(made);
  }
  if (auto told = print_join_line(context, **node, token); !told.ok()) return told.error();
  if (auto done = (*node)->run([&signals] { return signals.stop_requested(); }); !done.ok())
    return done.error();
  return signals.stop_requested() ? 128 + signals.signal_number() : 0;
}

// Reads the config that the user wrote, as 'train' does.
Result<commands::TrainRequest> train_request(Context& context, const CoordinatorFlags& flags,
                                             FunctionRef<bool()> stop) {
  auto settings =
      all_settings(context, {.config = flags.config, .overrides = flags.settings, .other_words = {"check"}});
  if (!settings.ok()) return settings.error();
  sparse_engine::TrainConfig config;
  if (auto done = sparse_engine::train_keys().apply(config, *settings); !done.ok()) return done.error();
  if (auto done = sparse_engine::validate(config); !done.ok()) return done.error();
  return commands::TrainRequest{.directory = absolute_path(flags.out),
                                .resume = flags.resume ? run::Continue::kResume : run::Continue::kNo,
                                .config = config,
                                .settings = std::move(*settings),
                                .stop_requested = stop};
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
  flags.out = commands::lead_directory(flags.out);
  auto kept = read_run_file(context, flags);
  if (!kept.ok()) return kept.error();
  const RunFile run = merged(*std::move(kept), flags);
  auto options = coordinator_options(context, flags, run);
  if (options.ok()) options->run_toml = to_toml(kSparseEngine, run, {});
  return options;
}

Result<ExitStatus> lead_training(Context& context, const CoordinatorFlags& flags) {
  const host::PosixSignals signals;
  const auto stop = [&signals] { return signals.stop_requested(); };
  auto request = train_request(context, flags, stop);
  if (!request.ok()) return request.error();
  auto options = lead_options(context, flags);
  if (!options.ok()) return options.error();
  auto machine = Machine::create(context, flags.common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  commands::LeadRunner runner(
      host, signals,
      {.lead = *std::move(options),
       .engine = std::string(kSparseEngine),
       .leads = [&context](const node::CoordinatorNode& lead, const std::string& token) {
         return print_join_line(context, lead, token);
       }});
  request->runner = &runner;
  const auto result = commands::run_training(host, *request);
  if (!result.ok()) return result.error();
  if (result->stopped) return signals.stop_requested() ? 128 + signals.signal_number() : 0;
  context.output.line(
      fmt::format("the model is in {0}/model; try: gossamer predict {0} ...", request->directory));
  return 0;
}

Result<ExitStatus> run(Context& context, const Command& self, std::span<const std::string> arguments) {
  CoordinatorFlags flags;
  auto parser = make_coordinator_parser(self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  const bool trains = flags.config != kCheckEngine && !is_prepared(flags);
  return trains ? lead_training(context, flags) : lead(context, flags);
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
              "  gossamer coordinator check --resume --out runs/fleet",
          .run = run};
}

}  // namespace gossamer::cli
