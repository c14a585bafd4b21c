// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/serving_job.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gossamer::commands {
namespace {

std::uint64_t bytes(std::size_t nodes, sparse_engine::PartInstances instances) {
  sparse_engine::OpenedModel model;
  model.header.features = 1000;
  model.header.labels = 200;
  model.header.hidden = 64;
  sparse_engine::InstanceCounts& counts = model.header.instances.emplace();
  counts.rows = 500;
  counts.feature_entries = 5000;
  counts.label_entries = 900;
  return prepare_serving(model, nodes, instances).bytes;
}

// The memory that every node needs to read its training records counts once for each node. Weights
// and records count once in all.
TEST(ServingJob, ReckonsMemoryOfEachNode) {
  using enum sparse_engine::PartInstances;
  EXPECT_EQ(bytes(3, kNone), bytes(1, kNone));
  EXPECT_GE(bytes(1, kNone), (1000U + 200U) * 64U * 4U);
  const std::uint64_t each = 1000 * (4 * 8 + 1) + 200 * 8;
  EXPECT_EQ(bytes(3, kShare), bytes(1, kShare) + 2 * each);
}

}  // namespace
}  // namespace gossamer::commands
