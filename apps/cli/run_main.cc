// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/run_main.h"

#include <signal.h>

#include <string>
#include <vector>

#include "apps/cli/console.h"
#include "apps/cli/program.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/environment.h"
#include "host/posix/module.h"

namespace gossamer::cli {

int run_main(int argc, char** argv, const commands::EngineList& engines) {
  host::hold_standard_streams();
  // A reader that went away (`gossamer ... | head`) is an error of the write, and does not end the process.
  ::signal(SIGPIPE, SIG_IGN);
  host::PosixDisk disk;
  const host::PosixClock clock;
  StderrConsole console;
  Output output;
  Context context{.engines = engines, .disk = disk, .clock = clock, .console = console, .output = output};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int status = run_program(context, arguments);
  // The command's files are closed, and its output is written.
  if (host::any_module_open()) host::end_process(status);
  return status;
}

}  // namespace gossamer::cli
