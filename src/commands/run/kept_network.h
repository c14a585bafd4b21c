// SPDX-License-Identifier: Apache-2.0
//
// What the checkpoints of a finished run still have of its network. Thread rule: plain function.
#pragma once

#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/disk.h"
#include "run/run_directory.h"

namespace gossamer::commands {

struct KeptNetwork {
  StepNumber step = {};  // of the newest checkpoint that is undamaged; 0: there is none
  bool trained = false;  // no step is left after it
};
// Reads all bytes of the newest checkpoints, until one is undamaged. A file of a fleet's member may be
// damaged where other members' files have its pieces, but not so far that nobody knows which. `summary`: the
// JSON of summary.json.
[[nodiscard]] Result<KeptNetwork> kept_network(host::Disk& disk, const run::RunPaths& paths,
                                               std::string_view summary);

}  // namespace gossamer::commands
