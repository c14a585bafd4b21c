// SPDX-License-Identifier: Apache-2.0
//
// FleetConfiguration: what a coordinator hands to the members of a sparse run: the resolved config, and the
// data: where they lie on its machine, and for members on others by content. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/sha256.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "node/fleet/fleet_data.h"
#include "node/training_samples.h"

namespace gossamer::node {

// A file of a run's imported data.
struct DataFile {
  std::string name;
  Sha256 manifest{};  // its id
  std::uint64_t bytes = 0;

  bool operator==(const DataFile&) const = default;
};

struct FleetConfiguration {
  engine::TrainConfig config;  // resolved
  CachePlace cache;            // paths from the root
  std::string deliver;         // directory for what members have trained, from the root
  std::string run;             // id
  std::string checkpoints;   // directory for those of the run's members, from the root; empty: they keep none
  StepNumber start;          // that the run begins with; not 0: there is a whole checkpoint of it
  std::string begin_from;    // in this directory, from the root
  bool one_machine = false;  // on which all members are
  unsigned shard_shift = 0;
  // What the coordinator found: a member that finds anything else must not train.
  std::uint64_t steps = 0;
  std::uint64_t features = 0;
  std::uint64_t labels = 0;
  std::vector<DataFile> data = {};

  [[nodiscard]] DataPlaces places() const { return {.cache = cache, .begin_from = begin_from}; }
};

[[nodiscard]] std::string fleet_configuration_bytes(const FleetConfiguration& configuration);
// kBadData for what cannot be read, or has keys that this version does not know.
[[nodiscard]] Result<FleetConfiguration> read_fleet_configuration(std::string_view bytes);

}  // namespace gossamer::node
