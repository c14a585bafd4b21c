// SPDX-License-Identifier: Apache-2.0
//
// NodeHost is the machine and the tools that every command of a node works with. It
// borrows them. They outlive the call.
//
// Thread rule: each part has its own. Commands run on the thread that owns the Compute.
#pragma once

#include "host/api/clock.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "kernels/kernels.h"
#include "run/console.h"
#include "run/progress.h"

namespace gossamer::run {

struct NodeHost {
  host::Disk& disk;
  const host::Clock& clock;
  host::Compute& compute;
  const kernels::Kernels& kernels;
  Console& console;
  Verbosity verbosity = Verbosity::kNormal;

  // Writes a line for people, or nothing when quiet.
  void say(std::string_view line) const {
    if (verbosity == Verbosity::kQuiet) return;
    console.write(std::string(line) + "\n");
  }
  // Writes "warning: " and the line, also when quiet: quiet spares people the progress, and no surprise.
  void warn(std::string_view line) const { console.write("warning: " + std::string(line) + "\n"); }
};

}  // namespace gossamer::run
