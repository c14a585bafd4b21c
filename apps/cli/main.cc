// SPDX-License-Identifier: Apache-2.0
//
// The one binary: puts the real machine together and hands it to the program.
#include <signal.h>

#include <string>
#include <vector>

#include "apps/cli/console.h"
#include "apps/cli/program.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/environment.h"

int main(int argc, char** argv) {
  gossamer::host::hold_standard_streams();
  // A reader that went away (`gossamer ... | head`) is an error of the write, and does not end the process.
  ::signal(SIGPIPE, SIG_IGN);
  gossamer::host::PosixDisk disk;
  const gossamer::host::PosixClock clock;
  gossamer::cli::StderrConsole console;
  gossamer::cli::Output output;
  gossamer::cli::Context context{.disk = disk, .clock = clock, .console = console, .output = output};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return gossamer::cli::run_program(context, arguments);
}
