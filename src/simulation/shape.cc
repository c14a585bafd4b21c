// SPDX-License-Identifier: Apache-2.0
#include "simulation/shape.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace gossamer::simulation {

using cluster::ViewChange;

Shape shape_of(const ChaosOptions& options) {
  Rng rng(options.seed, Purpose::kFault, 11);
  const StoreKind store = rng.below(2) == 0 ? StoreKind::kFile : StoreKind::kCluster;
  const Identity identity = rng.below(2) == 0 ? Identity::kCertified : Identity::kNumbered;
  // Most fleets stay plain, so that the usual case is tried most.
  const double hidden = rng.below(5) == 0 ? 0.4 : 0;
  // So little memory that one member may be missing and no more.
  const double fewest = static_cast<double>(std::max<std::size_t>(options.members, 2)) - 1;
  const double memory = rng.below(6) == 0 ? 1 / fewest : 1;
  const Duration freeze_time = from_seconds(rng.below(2) == 0 ? 6 : 30);
  const ViewChange change = rng.below(6) == 0 ? ViewChange::kAnnounced : ViewChange::kFrozen;
  const Duration scatter = rng.below(3) == 0 ? from_milliseconds(120) : Duration{};
  const bool drawn = options.script.empty() && options.faults > 0;
  const Shape plain;
  const double share = options.memory.value_or(drawn ? memory : 1);
  return {.store = options.store.value_or(store),
          .identity = options.identity.value_or(identity),
          .hidden = options.hidden.value_or(drawn ? hidden : plain.hidden),
          .memory = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(options.things) - 1e-9)),
          .freeze_time = options.freeze_time.value_or(drawn ? freeze_time : plain.freeze_time),
          .view_change = options.view_change.value_or(drawn ? change : plain.view_change),
          .scatter = options.scatter.value_or(drawn ? scatter : plain.scatter)};
}

}  // namespace gossamer::simulation
