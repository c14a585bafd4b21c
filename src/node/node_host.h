// SPDX-License-Identifier: Apache-2.0
//
// NodeHost: the machine and the tools that every command of a node works with. Borrowed; they outlive the
// call.
//
// Thread rule: that of its parts; commands run on the thread that owns the Compute.
#pragma once

#include "host/api/clock.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "kernels/kernels.h"
#include "node/console.h"
#include "node/progress.h"

namespace gossamer::node {

struct NodeHost {
  host::Disk& disk;
  const host::Clock& clock;
  host::Compute& compute;
  const kernels::Kernels& kernels;
  Console& console;
  Verbosity verbosity = Verbosity::kNormal;

  // A line for people; nothing when quiet.
  void say(std::string_view line) const {
    if (verbosity == Verbosity::kQuiet) return;
    console.write(std::string(line) + "\n");
  }
};

}  // namespace gossamer::node
