// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/torch_library.h"

#include <fmt/format.h>

#include "commands/lm/program_module.h"
#include "host/posix/child_process.h"
#include "host/posix/environment.h"

namespace gossamer::commands {
namespace {

constexpr ProgramModule kTorch = {.part = "torch",
                                  .file = "gossamer_torch.so",
                                  .symbol = pipeline::kTorchModuleSymbol,
                                  .names = host::ModuleNames::kOfTheProgram,
                                  .needed = "language models need a module of this program",
                                  .does = "the module, which computes them by libtorch",
                                  .missed_by = "language models need",
                                  .advice = "to train or ask language models: make torch"};

}  // namespace

Result<TorchLibrary> TorchLibrary::open(host::Disk& disk, const Options& options) {
  // They count from when libtorch is opened. Threads that wait by spinning would take the cores from those of
  // the Compute.
  host::set_environment_default("OMP_WAIT_POLICY", "PASSIVE");
  host::set_environment_default("OMP_NUM_THREADS", fmt::format("{}", options.threads));
  const auto opened = open_program_module(disk, options.program, kTorch);
  if (!opened.ok()) return opened.error();
  const auto& module = *static_cast<const pipeline::TorchModule*>(opened->symbol);
  if (module.version != pipeline::kTorchModuleVersion)
    return other_module(opened->path, module.version, pipeline::kTorchModuleVersion);
  return TorchLibrary(opened->path, module);
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
  const std::string program = host::own_program();
  const auto library = TorchLibrary::open(disk, {.program = program, .threads = host::usable_cores()});
  if (!library.ok()) return part_not_there(disk, program, kTorch, library.error());
  return part_there(
      kTorch, library->version(),
      fmt::format("libtorch {} for language models, by {}", library->version(), library->path()));
}

}  // namespace gossamer::commands
