// SPDX-License-Identifier: Apache-2.0
//
// The run whose checkpoints the tests of this folder write and read, and the disk that has them. Not part of
// the product. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include "engines/sparse/fleet/fleet_checkpoint.h"
#include "host/sim/disk.h"

namespace gossamer::commands::testing {

class CheckpointedRunTest : public ::testing::Test {
 protected:
  static constexpr const char* kDirectory = "/checkpoints";

  CheckpointedRunTest() { EXPECT_TRUE(disk_.make_directories(kDirectory).ok()); }

  const sparse_engine::FleetShape shape_{.network = {.features = 3, .labels = 5, .hidden = 16},
                                         .shard_shift = 31};
  const sparse_engine::CheckpointedRun run_{
      .network = shape_.network,
      .moments = {.embedding = sparse::Moments::kElement, .output = sparse::Moments::kElement},
      .fingerprint = "f"};
  host::SimDisk disk_;
};

}  // namespace gossamer::commands::testing
