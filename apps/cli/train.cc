// SPDX-License-Identifier: Apache-2.0
//
// gossamer train: from a config to a model.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "apps/cli/answering.h"
#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "base/shell_word.h"
#include "commands/engine/config_words.h"
#include "commands/engine/engine_list.h"
#include "commands/engine/run_request.h"
#include "commands/run/train_run.h"
#include "host/posix/child_process.h"
#include "host/posix/environment.h"
#include "host/posix/signals.h"
#include "node/places.h"
#include "run/lead_file.h"
#include "run/resume_command.h"
#include "run/run_directory.h"

namespace gossamer::cli {
namespace {

struct TrainFlags {
  CommonFlags common;
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  std::string skip_bad;
  std::string nodes;
  bool resume = false;
  bool keys = false;
};

Parser make_train_parser(const commands::EngineList& engines, const Command& self, TrainFlags& flags) {
  std::string footer = "Presets:\n";
  for (const commands::EngineEntry& engine : engines.all()) {
    for (const commands::PresetText& preset : engine.presets)
      footer += fmt::format("  {:<26} {}\n", preset.name, preset.help);
  }
  Parser parser({self.name, self.help, fmt::format("{}\n{}", footer, self.example)});
  parser.add_option("CONFIG", flags.config, "a preset, or a TOML file; with --resume that of the run in DIR")
      .type_name("");
  parser.add_option("KEYS", flags.overrides, "key=value: keys that overrule the config").type_name("");
  parser.add_option("--out", flags.out, "directory of the run, missing or empty").type_name("DIR");
  parser.add_flag("--resume", flags.resume, "continue the run in DIR, or start one if there is none");
  parser.add_flag(
      "--keys", flags.keys,
      "list all keys of a preset, a file or an engine, with default, range and meaning, and stop");
  parser.add_option("--skip-bad", flags.skip_bad, "same as data.skip_bad=N").type_name("N");
  parser
      .add_option("--nodes", flags.nodes,
                  "train by so many processes of this machine; any of them may be killed, the others go on")
      .type_name("N");
  add_threads(parser, flags.common);
  add_json(parser, flags.common, "print the summary as one JSON object");
  add_quiet(parser, flags.common);
  return parser;
}

std::string keys_text(const settings::Values& config) {
  std::string text;
  for (const settings::Key& key : config.keys().all()) {
    text += fmt::format("{:<34} {}\n{:<34}   {}\n", fmt::format("{}={}", key.name, config.text(key)),
                        key.help, "", settings::accepted_values(key));
  }
  return text;
}

Error missing(std::string_view what, std::string_view expected, std::string_view fix) {
  return {.kind = ErrorKind::kUsage,
          .where = {},
          .what = fmt::format("{} is missing", what),
          .got = {},
          .expected = std::string(expected),
          .fix = std::string(fix)};
}

// A lead of so many processes, which share the threads of this machine.
commands::LeadOptions lead_of(std::size_t nodes, const run::NodeHost& host) {
  const auto threads = static_cast<std::size_t>(host.compute.workers());
  commands::LeadOptions options;
  options.lead.program = program_name();
  options.own = commands::OwnNodes{.nodes = nodes,
                                   .threads_each = std::max<std::size_t>(1, threads / nodes),
                                   .program = host::own_program()};
  return options;
}

// The config of this command. A run that goes on has its own, so CONFIG may be left out. Then the word in
// its place is a key.
Result<commands::ChosenConfig> chosen_config(Context& context, const TrainFlags& flags) {
  commands::WrittenConfig written{.config = flags.config,
                                  .overrides = flags.overrides,
                                  .skip_bad = flags.skip_bad,
                                  .engines = flags.keys};
  const bool key = commands::is_key_word(flags.config);
  if (flags.keys || !flags.resume || !(flags.config.empty() || key))
    return commands::choose_config(context.disk, context.engines, written);
  if (key) written.overrides.insert(written.overrides.begin(), std::exchange(written.config, ""));
  return commands::config_of_run(context.disk, context.engines, flags.out, written);
}

// The nodes that the run in DIR had, where neither CONFIG nor --nodes says how it is to go on.
Result<std::size_t> nodes_before(Context& context, const TrainFlags& flags) {
  const bool as_before = flags.resume && (flags.config.empty() || commands::is_key_word(flags.config));
  if (!as_before) return std::size_t{0};
  const auto file = run::read_lead_file(context.disk, node::lead_directory(flags.out));
  if (!file.ok()) return file.error();
  return std::min<std::size_t>(file->nodes, commands::kMostOwnNodes);
}

// The threads that the run in DIR had, so that the model is the same to the last bit. Nothing where the user
// says how many, and where there are fewer cores here.
std::optional<int> threads_before(Context& context, const TrainFlags& flags) {
  if (!flags.resume || !flags.common.threads.empty()) return std::nullopt;
  const auto threads = run::threads_of_run(context.disk, flags.out);
  return threads && *threads <= host::usable_cores() ? threads : std::nullopt;
}

// The command that goes on with the run.
std::string resume_command(const TrainFlags& flags, std::size_t nodes) {
  std::string command = fmt::format("gossamer train --resume --out {}", shell_word(flags.out));
  if (nodes > 0) command += fmt::format(" --nodes {}", nodes);
  if (!flags.common.threads.empty()) command += fmt::format(" --threads {}", flags.common.threads);
  return command;
}

// Keys that only several nodes look at.
void tell_unused(const run::NodeHost& host, const std::vector<settings::KeySetting>& settings) {
  for (const settings::KeySetting& setting : settings) {
    if (setting.name.starts_with("cluster."))
      host.warn(fmt::format("{} is not looked at without --nodes", setting.name));
  }
}

// Machines that have joined a run have what they did since its last checkpoint. Whether any has is not known
// here: the lead's file is written before.
void tell_machines(Context& context, const run::NodeHost& host, const TrainFlags& flags) {
  const run::RunPaths paths(flags.out);
  const auto file = run::read_lead_file(context.disk, paths.lead());
  const auto finished = context.disk.exists(paths.summary());
  if (!flags.resume || !file.ok() || file->engine.empty() || file->nodes > 0) return;
  const auto ended = context.disk.exists(paths.root + "/nodes/ended");  // all have brought what they had
  if ((finished.ok() && *finished) || (ended.ok() && *ended)) return;
  host.warn(
      fmt::format("this run had a coordinator; machines that joined it may have steps that no checkpoint "
                  "here has; to go on with them: {}",
                  run::resume_command(context.disk, flags.out)));
}

Result<ExitStatus> train(Context& context, const TrainFlags& flags, const commands::ChosenConfig& chosen) {
  const auto able =
      context.engines.ability(chosen.engine, &commands::EngineEntry::prepare, "trains", "CONFIG");
  if (!able.ok()) return able.error();
  const host::PosixSignals signals;
  const auto stop = [&signals] { return signals.stop_requested(); };
  const auto before = nodes_before(context, flags);
  if (!before.ok()) return before.error();
  std::size_t nodes = *before;  // 0: this process does the steps
  if (!flags.nodes.empty()) {
    const auto wanted =
        parse_count(flags.nodes, {.flag = "--nodes", .min = 1, .max = commands::kMostOwnNodes});
    if (!wanted.ok()) return wanted.error();
    nodes = *wanted;
  }
  CommonFlags common = flags.common;
  const std::optional<int> threads = threads_before(context, flags);
  if (threads) common.threads = std::to_string(*threads);
  auto machine = Machine::create(context, common);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  if (const int cores = host::usable_cores(); threads && *threads < cores)
    host.say(
        fmt::format("{} threads as before; this process may use {}: --threads {}", *threads, cores, cores));
  commands::RunRequest request{.directory = flags.out,
                               .resume = flags.resume ? run::Continue::kResume : run::Continue::kNo,
                               .engine = context.engines.in_runs(chosen.engine),
                               .config = chosen.values,
                               .settings = chosen.settings,
                               .stop_requested = stop,
                               .resume_command = resume_command(flags, nodes),
                               .model_patience = commands::kModelPatience};
  if (nodes == 0) {
    tell_unused(host, request.settings);
    tell_machines(context, host, flags);
  } else {
    request.lead = lead_of(nodes, host);
    request.directory = absolute_path(flags.out);  // nodes need it
  }
  auto result = commands::run_training(host, chosen.engine, request);
  if (!result.ok()) return result.error();
  // 'gossamer stop' ends a run of several nodes, too.
  if ((*result).stopped) {
    if (signals.stop_requested()) return 128 + signals.signal_number();
    if (flags.common.json) context.output.line(R"({"stopped":true})");
    return 0;
  }
  if (flags.common.json) {
    context.output.line((*result).summary);
  } else {
    if (flags.common.quiet && !result->figures.empty()) context.output.line(result->figures);
    context.output.line(model_line(chosen.engine, request.directory));
  }
  return 0;
}

Result<ExitStatus> run_train(Context& context, const Command& self, std::span<const std::string> arguments) {
  TrainFlags flags;
  auto parser = make_train_parser(context.engines, self, flags);
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  if (flags.config.empty() && !flags.keys && !flags.resume) {
    return missing("CONFIG", "a preset such as xmc, or a TOML file",
                   "gossamer train xmc data.train=FILE --out DIR");
  }
  if (flags.out.empty() && flags.resume) return missing("--out", "the directory of the run", "add --out DIR");
  const auto chosen = chosen_config(context, flags);
  if (!chosen.ok()) return chosen.error();
  if (flags.keys && flags.common.json) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--json",
                 .what = "the list of keys is for people",
                 .expected = "--keys without --json",
                 .fix = "leave --json out"};
  }
  if (flags.keys) {
    context.output.write(keys_text(chosen->values));
    return 0;
  }
  // Without CONFIG the values are not those of the run.
  const bool whole = !flags.config.empty() && !commands::is_key_word(flags.config);
  if (auto done = whole ? chosen->engine.check(chosen->values) : Result<void>(); !done.ok())
    return done.error();
  if (flags.out.empty()) return missing("--out", "the directory of the run", "add --out runs/NAME");
  return train(context, flags, *chosen);
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .help = "trains a model from a preset or a TOML file",
      .example =
          "Ctrl-C writes a checkpoint and stops; --resume continues, to the same model. All else is in "
          "DIR.\n\n"
          "Example:\n  gossamer train xmc data.train=train.txt.gz data.test=test.txt.gz --out runs/first\n"
          "  gossamer train next-item data.train=sessions.txt --out runs/shop\n"
          "  gossamer train word2vec data.train=text.txt.zst --out runs/words\n"
          "  gossamer train lm data.train=book.txt --out runs/book\n"
          "  gossamer train xmc data.train=train.txt.gz --nodes 4 --out runs/four\n"
          "  gossamer train --resume --out runs/first\n"
          "  gossamer train --keys xmc",
      .run = run_train};
}

}  // namespace gossamer::cli
