// SPDX-License-Identifier: Apache-2.0
//
// FleetConfiguration: what a coordinator hands to the members of a sparse run, who are on its machine: the
// resolved config and where data lie. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "node/training_samples.h"

namespace gossamer::node {

struct FleetConfiguration {
  engine::TrainConfig config;  // resolved
  CachePlace cache;            // paths from the root
  std::string deliver;         // directory for what members have trained, from the root
  unsigned shard_shift = 0;
  // What the coordinator found: a member that finds anything else must not train.
  std::uint64_t steps = 0;
  std::uint64_t features = 0;
  std::uint64_t labels = 0;
};

[[nodiscard]] std::string fleet_configuration_bytes(const FleetConfiguration& configuration);
// kBadData for what cannot be read, or has keys that this version does not know.
[[nodiscard]] Result<FleetConfiguration> read_fleet_configuration(std::string_view bytes);

}  // namespace gossamer::node
