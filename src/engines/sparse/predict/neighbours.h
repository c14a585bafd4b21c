// SPDX-License-Identifier: Apache-2.0
//
// Operations on near training rows. They are shared by the predictor of one process, which has all rows, and
// by nodes that have a share each (serve/instance_scorer.h). The same code gives both the same bits.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/sparse/model/ranking.h"

namespace gossamer::sparse_engine {

// Scales x to length 1 into `out`, of the same size. The zero vector stays.
void to_unit_length(std::span<const float> x, float* out);

// A training row that is near a query, or is to be ranked with such rows.
struct FoundRow {
  std::uint32_t row = 0;  // its number among all rows of the model
  float input = 0;        // cosine to the query
  float hidden = 0;       // cosine of their hidden vectors
  bool operator==(const FoundRow&) const = default;
};

// Puts the best `count` >= 1 rows of both lists into `mixed`, by the mean of their two cosines, best first. A
// row whose mean is not finite is left out. The earlier content of `mixed` is replaced.
void mix_neighbours(std::span<const FoundRow> by_input, std::span<const FoundRow> by_hidden,
                    std::size_t count, std::vector<Scored>& mixed);

}  // namespace gossamer::sparse_engine
