// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/program_module.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace gossamer::commands {
namespace {

Error no_module(const ProgramModule& module, const std::vector<std::string>& places) {
  return {.kind = ErrorKind::kRefused,
          .where = places.front(),
          .what = fmt::format("{}, which is not there", module.needed),
          .got = fmt::format("no {} beside the program, nor in {}", module.file,
                             places.back().substr(0, places.back().rfind('/'))),
          .expected = std::string(module.does),
          .fix = "build it in the program's source folder: make torch"};
}

// What the loader says stays: it names a library that is missing.
Error not_opened(Error error) {
  error.kind = ErrorKind::kRefused;
  error.expected = "a module that opens, with the libraries that it needs";
  error.fix = "install or unpack these and build the module anew: make torch";
  return error;
}

}  // namespace

std::vector<std::string> module_places(const std::string& program, std::string_view file) {
  const std::size_t slash = program.rfind('/');
  CHECK(slash != std::string::npos, program);
  const std::string folder = program.substr(0, slash);
  return {fmt::format("{}/{}", folder, file), fmt::format("{}/../lib/gossamer/{}", folder, file)};
}

Result<OpenedModule> open_program_module(host::Disk& disk, const std::string& program,
                                         const ProgramModule& module) {
  const std::vector<std::string> all = module_places(program, module.file);
  for (const std::string& path : all) {
    const auto there = disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    const auto symbol = host::open_module(path, module.symbol, module.names);
    if (!symbol.ok()) return not_opened(symbol.error());
    return OpenedModule{.path = path, .symbol = *symbol};
  }
  return no_module(module, all);
}

Error other_module(const std::string& path, std::uint32_t version, std::uint32_t expected) {
  return {.kind = ErrorKind::kRefused,
          .where = path,
          .what = "the module was built for another version of this program",
          .got = fmt::format("version {} of the module", version),
          .expected = fmt::format("version {}", expected),
          .fix = "build program and module anew: make build torch"};
}

EnginePart part_there(const ProgramModule& module, std::string version, std::string found) {
  return {.name = module.part,
          .state = EnginePart::State::kThere,
          .version = std::move(version),
          .found = std::move(found)};
}

EnginePart part_not_there(host::Disk& disk, const std::string& program, const ProgramModule& module,
                          const Error& error) {
  bool there = false;
  for (const std::string& path : module_places(program, module.file)) {
    const auto found = disk.exists(path);
    there = there || !found.ok() || *found;
  }
  EnginePart part{.name = module.part};
  part.state = there ? EnginePart::State::kBroken : EnginePart::State::kMissing;
  part.found = there ? fmt::format("{}: {}: {}", error.where, error.what, error.got)
                     : fmt::format("no {}, which {}", module.file, module.missed_by);
  part.advice = there ? error.fix : std::string(module.advice);
  return part;
}

}  // namespace gossamer::commands
