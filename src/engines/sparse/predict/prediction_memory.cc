// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/prediction_memory.h"

#include <algorithm>

#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/predict/byte_vectors.h"

namespace gossamer::sparse_engine {

std::uint64_t prediction_memory(const TrainConfig& config, const Recipe& recipe, const DataShape& shape,
                                int workers) {
  if (config.data.test.empty() && recipe.held_out == 0) return 0;
  const std::uint64_t row =
      network_shape(recipe, shape.features, shape.labels).last_hidden() + sizeof(ByteScale);
  if (!config.predict.instances) return shape.labels * row;
  // Columns of features in more than one row in kDenseShare are dense. There can be at most so many.
  const std::uint64_t dense_columns =
      std::min<std::uint64_t>(shape.features, shape.feature_entries * kDenseShare / shape.records);
  const std::uint64_t columns = shape.feature_entries * 8 + dense_columns * shape.records * sizeof(float) +
                                std::uint64_t{shape.features} * 8;
  const std::uint64_t label_rows = shape.label_entries * 4 + std::uint64_t{shape.labels} * 8;
  const std::uint64_t cosines = kIndexQueries * shape.records * sizeof(float);
  const std::uint64_t centroids = std::uint64_t{shape.features} * sizeof(double);
  return (shape.labels + shape.records) * row + columns + label_rows +
         static_cast<std::uint64_t>(workers) * (cosines + centroids);
}

}  // namespace gossamer::sparse_engine
