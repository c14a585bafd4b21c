// SPDX-License-Identifier: Apache-2.0
//
// SparseShape: what kind of fleet and network a run has, where its options leave it open. Thread rule: plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulation/sparse/sparse_chaos.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {

// After it others go on with what is on the disk.
struct PowerOff {
  Duration after;  // of the start
  std::size_t members;
  unsigned shard_shift;
};

struct SparseShape {
  TinyProblem::Options problem;
  SparseFleet::Options fleet;
  std::vector<Fault> faults;  // in order of time
  // After changes of the view, as they come: a member is killed so long after, for ever or until it begins
  // again.
  std::vector<Duration> aftershocks;
  std::optional<PowerOff> power_off;
};

[[nodiscard]] SparseShape sparse_shape_of(const SparseChaosOptions& options);

}  // namespace gossamer::simulation
