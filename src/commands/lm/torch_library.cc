// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/torch_library.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "host/posix/child_process.h"
#include "host/posix/environment.h"
#include "host/posix/module.h"

namespace gossamer::commands {
namespace {

constexpr std::string_view kModuleFile = "gossamer_torch.so";
constexpr std::string_view kPartName = "torch";

Error no_module(const std::vector<std::string>& places) {
  return {.kind = ErrorKind::kRefused,
          .where = places.front(),
          .what = "language models need a module of this program, which is not there",
          .got = fmt::format("no {} beside the program, nor in {}", kModuleFile,
                             places.back().substr(0, places.back().rfind('/'))),
          .expected = "the module, which computes them by libtorch",
          .fix = "build it in the program's source folder: make torch"};
}

Error other_module(const std::string& path, std::uint32_t version) {
  return {.kind = ErrorKind::kRefused,
          .where = path,
          .what = "the module was built for another version of this program",
          .got = fmt::format("version {} of the module", version),
          .expected = fmt::format("version {}", pipeline::kTorchModuleVersion),
          .fix = "build program and module anew: make build torch"};
}

// What the loader says stays: it names a library that is missing.
Error not_opened(Error error) {
  error.kind = ErrorKind::kRefused;
  error.expected = "a module that opens, with the libraries of libtorch";
  error.fix = "unpack libtorch and build the module anew: make torch";
  return error;
}

}  // namespace

std::vector<std::string> TorchLibrary::places(const std::string& program) {
  const std::size_t slash = program.rfind('/');
  CHECK(slash != std::string::npos, program);
  const std::string folder = program.substr(0, slash);
  return {fmt::format("{}/{}", folder, kModuleFile),
          fmt::format("{}/../lib/gossamer/{}", folder, kModuleFile)};
}

Result<TorchLibrary> TorchLibrary::open(host::Disk& disk, const Options& options) {
  const std::vector<std::string> all = places(options.program);
  for (const std::string& path : all) {
    const auto there = disk.exists(path);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    // Threads that wait by spinning would take the cores from those of the Compute.
    host::set_environment_default("OMP_WAIT_POLICY", "PASSIVE");
    host::set_environment_default("OMP_NUM_THREADS", fmt::format("{}", options.threads));
    const auto symbol = host::open_module(path, pipeline::kTorchModuleSymbol);
    if (!symbol.ok()) return not_opened(symbol.error());
    const auto& module = *static_cast<const pipeline::TorchModule*>(*symbol);
    if (module.version != pipeline::kTorchModuleVersion) return other_module(path, module.version);
    return TorchLibrary(path, module);
  }
  return no_module(all);
}

Result<MakeStage> open_torch_stages(const run::NodeHost& host) {
  const auto library =
      TorchLibrary::open(host.disk, {.program = host::own_program(), .threads = host.compute.workers()});
  if (!library.ok()) return library.error();
  return MakeStage([library = *library](const pipeline::TorchStageOptions& options) {
    return library.make_stage(options);
  });
}

EnginePart look_at_torch(host::Disk& disk) {
  const auto library =
      TorchLibrary::open(disk, {.program = host::own_program(), .threads = host::usable_cores()});
  EnginePart part{.name = kPartName};
  if (library.ok()) {
    part.state = EnginePart::State::kThere;
    part.version = library->version();
    part.found = fmt::format("libtorch {} for language models, by {}", part.version, library->path());
    return part;
  }
  const Error& error = library.error();
  const std::vector<std::string> places = TorchLibrary::places(host::own_program());
  bool there = false;
  for (const std::string& path : places) {
    const auto found = disk.exists(path);
    there = there || !found.ok() || *found;
  }
  part.state = there ? EnginePart::State::kBroken : EnginePart::State::kMissing;
  part.found = there ? fmt::format("{}: {}: {}", error.where, error.what, error.got)
                     : fmt::format("no {}, which language models need", kModuleFile);
  part.advice = there ? error.fix : "to train or ask language models: make torch";
  return part;
}

}  // namespace gossamer::commands
