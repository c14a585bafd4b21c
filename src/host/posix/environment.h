// SPDX-License-Identifier: Apache-2.0
//
// The surroundings of a process: environment variables, the cores it may use, the terminal. Thread rule: any
// thread; environment() as long as nobody changes the environment (set_environment_default() alone does).
#pragma once

#include <optional>
#include <string>

namespace gossamer::host {

// Call first in main(). A standard stream that the parent closed gets /dev/null, so that no file of ours
// becomes standard output or error. Reading such an input and writing such an output still fail, with EBADF.
void hold_standard_streams();

// The variable's value, which may be empty; nothing when it is not set.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);

// Sets a variable that is not set, also not to an empty value. For a library that is opened later. Requires
// that no other thread reads the environment meanwhile.
void set_environment_default(const std::string& name, const std::string& value);

// What this machine calls itself; "?" if it does not say.
[[nodiscard]] std::string machine_name();

// The number of cores that this process may keep busy, at least 1. It is the smaller of two numbers: the
// cores of its CPU affinity, and the CPU quota of its control groups, rounded down. (A worker that waits for
// a throttled one is lost anyway.)
[[nodiscard]] int usable_cores();

struct Terminal {
  bool is_terminal = false;  // false: a file, a pipe, or closed
  int columns = 80;          // width; 80 where it is unknown
};
// The terminal of standard error, where progress is shown. Cheap; ask again to follow a terminal that is
// resized.
[[nodiscard]] Terminal stderr_terminal();

// Whether standard error takes a line of up to 4 KiB without waiting.
[[nodiscard]] bool stderr_takes_more();

}  // namespace gossamer::host
