// SPDX-License-Identifier: Apache-2.0
//
// FleetConfiguration is what a coordinator hands to the members of a sparse run: the resolved config and the
// data. The data have a place on the coordinator's machine, and for members on other machines a name by
// content. Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/sha256.h"
#include "commands/train/training_samples.h"
#include "commands/train_fleet/fleet_data.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"

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
  std::string run;             // id of the run
  // Directory for the checkpoints of the run's members, from the root; empty: they keep none.
  std::string checkpoints;
  // The step that the run begins with. If it is not 0, there is a whole checkpoint of it.
  StepNumber start;
  std::string begin_from;    // directory of that checkpoint, from the root
  bool one_machine = false;  // whether all members are on one machine
  unsigned shard_shift = 0;
  // The numbers that the coordinator found. A member that finds other numbers must not train.
  std::uint64_t steps = 0;
  std::uint64_t features = 0;
  std::uint64_t labels = 0;
  std::vector<DataFile> data = {};

  [[nodiscard]] DataPlaces places() const { return {.cache = cache, .begin_from = begin_from}; }
};

[[nodiscard]] std::string fleet_configuration_bytes(const FleetConfiguration& configuration);
// Reads a configuration. kBadData for bytes that cannot be read, or that have keys unknown to this version.
[[nodiscard]] Result<FleetConfiguration> read_fleet_configuration(std::string_view bytes);

}  // namespace gossamer::node
