// SPDX-License-Identifier: Apache-2.0
//
// FleetConfiguration: what the coordinator of a sparse run tells its members beside the Supply
// (node/files/supply.h). That is the resolved config, and what the coordinator has found in the data.
//
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/config/config.h"

namespace gossamer::commands {

struct FleetConfiguration {
  sparse_engine::TrainConfig config;  // resolved
  std::string run;                    // id of the run
  // Directories on the coordinator's machine, from the root. A member elsewhere has its own (member_job.h).
  std::string checkpoints;   // of the run's members; empty: they keep none
  std::string begin_from;    // with the checkpoint of `start`
  StepNumber start;          // that the run begins with; not 0: there is a whole checkpoint of it
  bool one_machine = false;  // on which all members are
  unsigned shard_shift = 0;
  // The numbers that the coordinator found. A member that finds other numbers must not train.
  std::uint64_t steps = 0;
  std::uint64_t features = 0;
  std::uint64_t labels = 0;
};

[[nodiscard]] std::string fleet_configuration_bytes(const FleetConfiguration& configuration);
// Reads a configuration. kBadData for bytes that cannot be read, or that have keys unknown to this version.
[[nodiscard]] Result<FleetConfiguration> read_fleet_configuration(std::string_view bytes);

}  // namespace gossamer::commands
