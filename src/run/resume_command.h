// SPDX-License-Identifier: Apache-2.0
//
// resume_command() is the command that goes on with the run in a directory. Thread rule: plain function.
#pragma once

#include <string>

#include "host/api/disk.h"

namespace gossamer::run {

// "gossamer train --resume --out DIR", or 'coordinator' for a run whose members come from anywhere. The words
// can be copied into a shell. How many threads and own members a run has, it knows itself.
[[nodiscard]] std::string resume_command(host::Disk& disk, const std::string& directory);

}  // namespace gossamer::run
