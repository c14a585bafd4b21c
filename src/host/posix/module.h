// SPDX-License-Identifier: Apache-2.0
//
// A module: a shared library of this program that is opened only where a run needs it. It stays open until
// the process ends, because libraries below it may not bear to be closed. Nor may destructors of their static
// objects bear to run. So a process with a module ends by end_process().
//
// Thread rule: any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace gossamer::host {

// Where a module looks for a name that it uses.
enum class ModuleNames {
  // In the program and its libraries first: there is one of each.
  kOfTheProgram,
  // In itself and its own libraries first, where these have another version of what the program has.
  // Sanitizers end the process for it.
  kItsOwn,
};

// The address of `symbol` in the library at `path`, which does not show its names to other libraries. `path`
// has a "/". A library that is open already stays as it is. Errors, kFailed with `where` = path: no such
// file; no library; a library that it needs is missing (`got` names it); no such symbol.
[[nodiscard]] Result<void*> open_module(const std::string& path, const std::string& symbol,
                                        ModuleNames names = ModuleNames::kOfTheProgram);

// Whether a module was opened in this process.
[[nodiscard]] bool any_module_open();

// Ends the process with this status and no destructor. Streams of the C library are written out first. What
// this program buffers itself must be written before.
[[noreturn]] void end_process(int status);

}  // namespace gossamer::host
