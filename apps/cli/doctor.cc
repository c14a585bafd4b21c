// SPDX-License-Identifier: Apache-2.0
//
// gossamer doctor: is this machine fit, and what would make it fitter?
#include "node/doctor.h"

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"

namespace gossamer::cli {
namespace {

Result<ExitStatus> run(Context& context, const Command& self, std::span<const std::string> arguments) {
  CommonFlags flags;
  auto parser = make_parser({self.name, self.help, self.example});
  add_json(*parser, flags, "one JSON object: {\"ok\",\"checks\":[...]}");
  auto parsed = parse(*parser, arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(help_text(*parser)), 0;

  auto machine = Machine::create(context, flags);
  if (!machine.ok()) return machine.error();
  const std::vector<node::Finding> findings = node::examine((*machine).host());
  context.output.write(flags.json ? node::to_json(findings) + "\n" : node::to_text(findings));
  return node::healthy(findings) ? 0 : static_cast<int>(ErrorKind::kFailed);
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .help = "checks this machine and says what to change",
          .example =
              "Exit status 0: fit (advice does not count), 1: something will not work.\n\n"
              "Example:\n  cd /data && gossamer doctor",
          .run = run};
}

}  // namespace gossamer::cli
