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

// The address of `symbol` in the library at `path`, which does not show its names to other
// libraries. It may use names of this program, where it does not have them itself. `path` has a "/". Errors,
// kFailed with `where` = path: no such file; no library; a library that it needs is missing (`got` names it);
// no such symbol.
[[nodiscard]] Result<void*> open_module(const std::string& path, const std::string& symbol);

// Whether a module was opened in this process.
[[nodiscard]] bool any_module_open();

// Ends the process with this status and no destructor. Streams of the C library are written out first. What
// this program buffers itself must be written before.
[[noreturn]] void end_process(int status);

}  // namespace gossamer::host
