// SPDX-License-Identifier: Apache-2.0
//
// TorchLibrary opens gossamer_torch.so, the module of this program that computes stages of language models by
// libtorch (program_module.h). Its threads sleep while they wait (OMP_WAIT_POLICY), and are as many as the
// Compute has (OMP_NUM_THREADS), unless the user has set these variables.
//
// Errors: those of open_program_module(); kRefused for a module that was built for another version of this
// program.
// Thread rule: the thread that owns the Compute, while no other thread reads the environment.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "commands/engine/engine_part.h"
#include "commands/lm/lm_modules.h"
#include "engines/pipeline/torch/torch_module.h"
#include "host/api/disk.h"

namespace gossamer::commands {

class TorchLibrary {
 public:
  struct Options {
    std::string program;  // path of the program's file, with a "/"
    int threads = 1;      // at least 1
  };
  [[nodiscard]] static Result<TorchLibrary> open(host::Disk& disk, const Options& options);

  [[nodiscard]] const std::string& path() const { return path_; }
  // "2.13.0"
  [[nodiscard]] std::string version() const { return module_->torch_version; }
  [[nodiscard]] Result<std::unique_ptr<pipeline::StageBackend>> make_stage(
      const pipeline::TorchStageOptions& options) const {
    return module_->make_stage(options);
  }

 private:
  TorchLibrary(std::string path, const pipeline::TorchModule& module)
      : path_(std::move(path)), module_(&module) {}

  std::string path_;
  const pipeline::TorchModule* module_;  // lives as long as the process
};

// The module of the program that runs here.
[[nodiscard]] Result<MakeStage> open_torch_stages(const run::NodeHost& host);
// Whether it is there, for `version` and `doctor`. Opens it.
[[nodiscard]] EnginePart look_at_torch(host::Disk& disk);

}  // namespace gossamer::commands
