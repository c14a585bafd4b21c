// SPDX-License-Identifier: Apache-2.0
#include "run/resume_command.h"

#include <fmt/format.h>

#include "base/shell_word.h"
#include "run/lead_file.h"
#include "run/run_directory.h"

namespace gossamer::run {

std::string resume_command(host::Disk& disk, const std::string& directory) {
  const auto lead = read_lead_file(disk, RunPaths(directory).lead());
  const bool anywhere = lead.ok() && !lead->engine.empty() && lead->nodes == 0;
  return fmt::format("gossamer {} --resume --out {}", anywhere ? "coordinator" : "train",
                     shell_word(directory));
}

}  // namespace gossamer::run
