// SPDX-License-Identifier: Apache-2.0
//
// Shape: the kind of fleet that a run has, with drawn values for options that are not set. Thread rule: plain
// values.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "cluster/control/coordinator.h"
#include "simulation/cluster_chaos.h"

namespace gossamer::simulation {

struct Shape {
  StoreKind store = StoreKind::kFile;
  Identity identity = Identity::kNumbered;
  double hidden = 0;         // fraction of members behind NAT
  std::uint64_t memory = 0;  // of each member, in things
  Duration freeze_time = from_seconds(30);
  cluster::ViewChange view_change = cluster::ViewChange::kFrozen;
  Duration scatter = {};
};

[[nodiscard]] Shape shape_of(const ChaosOptions& options);

}  // namespace gossamer::simulation
