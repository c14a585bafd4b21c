// SPDX-License-Identifier: Apache-2.0
//
// The test records of a run that several nodes measure together: imported once, with the numbers that the
// trained network has for features and labels, so that each node reads them as it reads training records.
//
//   DIR/cache/test.cache    a dataset cache; labels that the model does not know lie beyond its own
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "engines/sparse/evaluation.h"
#include "engines/sparse/model.h"
#include "node/node_host.h"
#include "node/prediction.h"

namespace gossamer::node {

inline constexpr const char* kTestCache = "test.cache";

// Writes the file, whole or not at all. Of the model the network's shape is looked at, not its weights.
// Errors are those of read_test_set() and of the disk.
[[nodiscard]] Result<void> write_test_cache(const NodeHost& host, const engine::Model& model,
                                            const TestSet& test, const std::string& path);

// What one process that answers alike would measure. `ranks`: of each label of each record of the file, in
// their order, as Evaluator::add_ranks() has them. kBadData where these are not as many.
[[nodiscard]] Result<engine::Metrics> metrics_of_ranks(const NodeHost& host, const engine::Model& model,
                                                       const std::string& path,
                                                       std::span<const std::uint32_t> ranks);

}  // namespace gossamer::node
