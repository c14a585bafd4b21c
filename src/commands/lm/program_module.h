// SPDX-License-Identifier: Apache-2.0
//
// A module of this program (host/posix/module.h): a library that a command opens where it needs it. It lies
// beside the program's file, or in ../lib/gossamer/ of its folder, where `make install` puts it. The first of
// the two is taken.
//
// An opened module stays open until the process ends, which is by host::end_process().
//
// Errors: kRefused with what to type, where the module is missing, does not open, or needs a library that is
// missing (named); those of the disk.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "commands/engine/engine_part.h"
#include "host/api/disk.h"
#include "host/posix/module.h"

namespace gossamer::commands {

// What is told of a module, and how it is opened. The words are parts of sentences, and live as long as the
// program.
struct ProgramModule {
  std::string_view part;       // "torch"
  std::string_view file;       // "gossamer_torch.so"
  const char* symbol;          // what it shows
  host::ModuleNames names;     // where it looks for names
  std::string_view needed;     // "language models need a module of this program"
  std::string_view does;       // "the module, which computes them by libtorch"
  std::string_view missed_by;  // "language models need"
  std::string_view advice;     // "to train or ask language models: make torch"
};

struct OpenedModule {
  std::string path;
  const void* symbol;  // lives as long as the process
};

// Where a module of a program may lie, in the order in which it is looked for. `program`: the path of the
// program's file, with a "/".
[[nodiscard]] std::vector<std::string> module_places(const std::string& program, std::string_view file);
[[nodiscard]] Result<OpenedModule> open_program_module(host::Disk& disk, const std::string& program,
                                                       const ProgramModule& module);
// A module that was built with other headers than the program.
[[nodiscard]] Error other_module(const std::string& path, std::uint32_t version, std::uint32_t expected);

// For `version` and `doctor`. `found`: what is told of a module that is there.
[[nodiscard]] EnginePart part_there(const ProgramModule& module, std::string version, std::string found);
// `error`: why it did not open.
[[nodiscard]] EnginePart part_not_there(host::Disk& disk, const std::string& program,
                                        const ProgramModule& module, const Error& error);

}  // namespace gossamer::commands
