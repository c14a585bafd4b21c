// SPDX-License-Identifier: Apache-2.0
//
// The memory that a run needs to measure its model, for memory_needed() of engines/sparse/config/recipe.h.
//
// Thread rule: pure function on plain values.
#pragma once

#include <cstdint>

#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"

namespace gossamer::sparse_engine {

// Bytes of a Predictor on `workers` beside the model: rows as bytes (row_search.h), the index of the
// instances and each worker's part of it (instance_index.h). 0 for a run that measures nothing, because it
// has neither test records nor held-out records.
[[nodiscard]] std::uint64_t prediction_memory(const TrainConfig& config, const Recipe& recipe,
                                              const DataShape& shape, int workers);

}  // namespace gossamer::sparse_engine
