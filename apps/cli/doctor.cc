// SPDX-License-Identifier: Apache-2.0
//
// gossamer doctor: is this machine fit, and what would make it fitter? What
// stands between it and a coordinator?
#include "commands/doctor.h"

#include <algorithm>
#include <iterator>

#include "apps/cli/arguments.h"
#include "apps/cli/cluster_words.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/coordinator_doctor.h"

namespace gossamer::cli {
namespace {

// Finds the coordinator to examine. Credentials that this machine happens to have are welcome. To
// have none is worth only a finding.
Result<node::Target> whom_to_examine(Context& context, const TargetFlags& flags) {
  auto target = find_target(context, flags);
  if (target.ok()) return target;
  auto at = host::parse_endpoint(flags.target);
  if (!at.ok()) return target;
  return node::Target{.at = *at, .asker = {}};
}

Result<ExitStatus> run_doctor(Context& context, const Command& self, std::span<const std::string> arguments) {
  CommonFlags flags;
  TargetFlags target;
  Parser parser({self.name, self.help, self.example});
  parser.add_option("COORDINATOR", target.target, "HOST:PORT, or a run's directory: can this machine join?")
      .type_name("");
  add_directory_and_token(parser, target);
  add_json(parser, flags, "one JSON object: {\"ok\",\"checks\":[...]}");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;
  if (target.target.empty() && (parser.given("--dir") || parser.given("--token"))) {
    return Error{
        .kind = ErrorKind::kUsage,
        .what = "--dir and --token are for the way to a coordinator",
        .expected = "COORDINATOR, its HOST:PORT or the directory of its run",
        .fix = "gossamer doctor HOST:PORT --token TOKEN; without all of them it looks at this machine"};
  }

  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  std::vector<commands::Finding> findings;
  if (target.target.empty()) {
    findings = commands::examine((*machine).host());
    std::ranges::move(commands::examine_parts(context.disk, context.engines), std::back_inserter(findings));
  } else {
    const auto whom = whom_to_examine(context, target);
    if (!whom.ok()) return whom.error();
    findings = commands::examine_coordinator((*machine).host(), whom->at, whom->asker, program_name());
  }
  context.output.write(flags.json ? commands::to_json(findings) + "\n" : commands::to_text(findings));
  return commands::healthy(findings) ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .help = "checks this machine, or its way to a coordinator, and says what to change",
          .example =
              "Exit status 0: fit (advice does not count), 1: something will not work.\n\n"
              "Example:\n  cd /data && gossamer doctor\n"
              "  gossamer doctor 10.0.0.1:7070 --token gossamer1.CmQ...",
          .run = run_doctor};
}

}  // namespace gossamer::cli
