// SPDX-License-Identifier: Apache-2.0
//
// gossamer version: what this binary is.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "apps/cli/arguments.h"
#include "apps/cli/command.h"
#include "apps/cli/machine.h"
#include "commands/engine/engine_part.h"
#include "net/codec/codec.h"
#include "node/admission/enrolling.h"

namespace gossamer::cli {
namespace {

std::string wire_versions() {
  const cluster::WireRange wire = node::wire_range();
  return wire.least == wire.most ? fmt::format("{}", wire.most)
                                 : fmt::format("{} to {}", wire.least, wire.most);
}

// What engines need beside the program.
std::vector<commands::EnginePart> engine_parts(Context& context) {
  std::vector<commands::EnginePart> parts;
  for (const commands::EngineEntry& engine : context.engines.all()) {
    if (!engine.parts) continue;
    for (commands::EnginePart& part : engine.parts(context.disk)) parts.push_back(std::move(part));
  }
  return parts;
}

// {"torch":"2.13.0","sentencepiece":"0.1.97"}; null for what cannot be used.
nlohmann::ordered_json parts_json(const std::vector<commands::EnginePart>& parts) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const commands::EnginePart& part : parts) {
    nlohmann::ordered_json& version = json[std::string(part.name)];
    if (part.state == commands::EnginePart::State::kThere) version = part.version;
  }
  return json;
}

Result<ExitStatus> run_version(Context& context, const Command& self,
                               std::span<const std::string> arguments) {
  CommonFlags flags;
  Parser parser({self.name, self.help, self.example});
  add_json(parser, flags, "one JSON object");
  auto parsed = parser.parse(arguments);
  if (!parsed.ok()) return parsed.error();
  if (*parsed == Parsed::kHelp) return context.output.write(parser.help()), 0;

  auto kernels = choose_kernels();
  if (!kernels.ok()) return kernels.error();
  const std::string isa(kernels::name((*kernels)->isa));
  std::vector<std::string> supported;
  for (const kernels::Isa each : kernels::kAllIsas) {
    if (kernels::supported(each)) supported.emplace_back(kernels::name(each));
  }
  const std::vector<commands::EnginePart> parts = engine_parts(context);
  if (flags.json) {
    const nlohmann::ordered_json json = {
        {"version", GOSSAMER_VERSION},
        {"build", {{"type", GOSSAMER_BUILD_TYPE}, {"compiler", GOSSAMER_COMPILER}}},
        {"isa", isa},
        {"isas_supported", supported},
        {"codecs", net::kF32CodecNames},
        {"parts", parts_json(parts)},
        {"wire_versions", {{"link", {{"min", node::wire_range().least}, {"max", node::wire_range().most}}}}}};
    context.output.line(json.dump());
    return 0;
  }
  context.output.write(
      fmt::format("gossamer {}\nbuild         {}, {}\nisa           {} (supported: {})\n"
                  "codecs        {}\nwire          {} (a run's nodes must have one in common)\n",
                  GOSSAMER_VERSION, GOSSAMER_BUILD_TYPE, GOSSAMER_COMPILER, isa, fmt::join(supported, " "),
                  fmt::join(net::kF32CodecNames, " "), wire_versions()));
  for (const commands::EnginePart& part : parts) {
    context.output.write(
        fmt::format("{:<13} {}{}{}\n", part.name, part.found, part.advice.empty() ? "" : "; ", part.advice));
  }
  return 0;
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .help = "version, build and instruction set in use",
          .example = "Example:\n  gossamer version --json\n  GOSSAMER_ISA=scalar gossamer version",
          .run = run_version};
}

}  // namespace gossamer::cli
