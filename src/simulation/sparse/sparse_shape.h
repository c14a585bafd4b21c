// SPDX-License-Identifier: Apache-2.0
//
// SparseShape: the kind of fleet and network that a run has, with drawn values for options that are not set.
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulation/sparse/sparse_chaos.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {

// All machines lose power. Then other members go on with the checkpoints on the disk.
struct PowerOff {
  Duration after;  // from the start
  std::size_t members;
  unsigned shard_shift;
};

struct SparseShape {
  TinyProblem::Options problem;
  SparseFleet::Options fleet;
  std::vector<Fault> faults;  // in order of time
  // After changes of the view, in turn: a member is killed so long after the change, for ever or until it
  // begins again.
  std::vector<Duration> aftershocks;
  std::optional<PowerOff> power_off;
};

[[nodiscard]] SparseShape sparse_shape_of(const SparseChaosOptions& options);

}  // namespace gossamer::simulation
