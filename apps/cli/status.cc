// SPDX-License-Identifier: Apache-2.0
//
// gossamer status and stop: what users ask a coordinator.
#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "node/cluster_status.h"
#include "node/event_loop.h"
#include "node/questions.h"

namespace gossamer::cli {
namespace {

constexpr Duration kWatchEvery{1'000'000'000};
constexpr std::string_view kClearScreen = "\x1b[H\x1b[J";

struct StatusFlags {
  CommonFlags common;
  TargetFlags target;
  bool watch = false;
};

Result<void> show(Context& context, const StatusFlags& flags, const std::string& json) {
  if (flags.common.json) {
    context.output.line(json);
  } else {
    const auto text = node::status_text(json);
    if (!text.ok()) return text.error();
    if (flags.watch && context.output.terminal()) context.output.write(kClearScreen);
    context.output.write(*text);
    if (flags.watch && !context.output.terminal()) context.output.write("\n");
  }
  return context.output.flush();
}

// Shows the status again and again, until Ctrl-C. That ends it at once, also while a coordinator does not
// answer, because nothing is left to be done. A coordinator that is away may come back. A refusal stays.
Result<ExitStatus> watch(Context& context, const StatusFlags& flags, const run::NodeHost& host,
                         const node::Target& target) {
  node::EventLoop loop(context.clock);
  Instant next = loop.now();
  std::optional<Error> failure;
  loop.run(
      [&]() -> std::optional<Instant> {
        if (loop.now() < next) return next;
        const auto status = node::ask_status(host, target.at, target.asker);
        if (status.ok()) {
          if (auto shown = show(context, flags, *status); !shown.ok()) failure = shown.error();
        } else if (status.error().kind == ErrorKind::kFailed) {
          host.say(status.error().message());
        } else {
          failure = status.error();
        }
        next = loop.now() + kWatchEvery;
        return next;
      },
      [&] { return failure.has_value(); });
  // The reader of `... --watch | head` wants no more, and no message either.
  if (context.output.reader_left()) return static_cast<int>(ErrorKind::kFailed);
  return *failure;
}

Result<ExitStatus> run_status(Context& context, const Command& self, std::span<const std::string> arguments) {
  StatusFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_target(parser, flags.target);
  add_directory_and_token(parser, flags.target);
  parser.add_flag("--watch", flags.watch, "again each second, until Ctrl-C");
  add_json(parser, flags.common, "one JSON object; with --watch one a line");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  const auto target = find_target(context, flags.target);
  if (!target.ok()) return target.error();
  CommonFlags own = flags.common;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  const run::NodeHost host = (*machine).host();
  if (flags.watch) return watch(context, flags, host, *target);
  const auto status = node::ask_status(host, target->at, target->asker);
  if (!status.ok()) return not_answered(context, flags.target, *target, status.error());
  if (auto shown = show(context, flags, *status); !shown.ok()) return shown.error();
  return 0;
}

Result<ExitStatus> run_stop(Context& context, const Command& self, std::span<const std::string> arguments) {
  StatusFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_target(parser, flags.target);
  parser.add_option("--dir", flags.target.directory, "the coordinator's directory").type_name("DIR");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  const auto target = find_target(context, flags.target);
  if (!target.ok()) {
    Error error = target.error();
    if (error.kind == ErrorKind::kFailed) return error;  // nothing answers there
    error.expected = "the run's directory, or HOST:PORT with --dir DIR";
    error.fix = "run this on the coordinator's machine: tokens and nodes' credentials end no run";
    return error;
  }
  CommonFlags own = flags.common;
  own.threads = "1";
  auto machine = Machine::create(context, own);
  if (!machine.ok()) return machine.error();
  if (auto stopped = node::ask_stop((*machine).host(), target->at, target->asker); !stopped.ok())
    return not_answered(context, flags.target, *target, stopped.error());
  context.output.line("the run ends: members save what they have and leave, then the coordinator");
  return 0;
}

}  // namespace

Command status_command() {
  return {.name = "status",
          .help = "who is in a run, who holds what, and how it goes",
          .example =
              "On the coordinator's machine and on those that joined, credentials are found by the address;\n"
              "elsewhere a token serves. docs/protocols/status.md describes the JSON.\n\n"
              "Example:\n"
              "  gossamer status 10.0.0.1:7070 --watch\n"
              "  gossamer status runs/fleet --json",
          .run = run_status};
}

Command stop_command() {
  return {.name = "stop",
          .help = "ends a run: members save what they have and leave",
          .example =
              "Only on the coordinator's machine, with the credentials in its directory.\n\n"
              "Example:\n  gossamer stop runs/fleet",
          .run = run_stop};
}

}  // namespace gossamer::cli
