// SPDX-License-Identifier: Apache-2.0
//
// The test records of a run that several nodes measure together. They are imported once,
// with the numbers that the trained network has for features and labels. Each node then
// reads them as it reads training records.
//
//   DIR/cache/test.cache    a dataset cache; labels that the model does not know have numbers beyond its own
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "commands/predict/prediction.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/evaluation.h"
#include "run/node_host.h"

namespace gossamer::commands {

inline constexpr const char* kTestCache = "test.cache";

// Writes the file, whole or not at all. The model gives the network's shape; its weights are not looked at.
// Errors are those of read_test_set() and of the disk.
[[nodiscard]] Result<void> write_test_cache(const run::NodeHost& host, const sparse_engine::Model& model,
                                            const TestSet& test, const std::string& path);

// The metrics that one process with the same answers would measure. `ranks` has the label rank of each
// label of each record of the file, in their order, as Evaluator::add_ranks() takes them. kBadData
// where their number is another.
[[nodiscard]] Result<sparse_engine::Metrics> metrics_of_ranks(const run::NodeHost& host,
                                                              const sparse_engine::Model& model,
                                                              const std::string& path,
                                                              std::span<const std::uint32_t> ranks);

}  // namespace gossamer::commands
