// SPDX-License-Identifier: Apache-2.0
//
// What is done with near training rows wherever they are searched: by the predictor of one process, which has
// all of them, and by nodes that have a share each (fleet/instance_scorer.h). One code, so that both come to
// the same bits.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/sparse/ranking.h"

namespace gossamer::engine {

// x scaled to length 1 into `out`, of the same size; the zero vector stays.
void to_unit_length(std::span<const float> x, float* out);

// A training row that is near a query, or is to be ranked with those that are.
struct FoundRow {
  std::uint32_t row = 0;  // among all of the model
  float input = 0;        // cosine to the query
  float hidden = 0;       // of their hidden vectors
  bool operator==(const FoundRow&) const = default;
};

// The best `count` >= 1 rows of both lists by the mean of their two cosines, best first. Where that is
// not finite, the row is left out. Replaces what is in `mixed`.
void mix_neighbours(std::span<const FoundRow> by_input, std::span<const FoundRow> by_hidden,
                    std::size_t count, std::vector<Scored>& mixed);

}  // namespace gossamer::engine
