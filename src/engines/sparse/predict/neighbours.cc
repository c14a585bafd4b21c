// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/neighbours.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "learn/data/unit_length.h"

namespace gossamer::sparse_engine {

void to_unit_length(std::span<const float> x, float* out) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
  data::to_unit_length(x, squares, out);
}

void mix_neighbours(std::span<const FoundRow> by_input, std::span<const FoundRow> by_hidden,
                    std::size_t count, std::vector<Scored>& mixed) {
  CHECK(count >= 1);
  mixed.clear();
  for (const std::span<const FoundRow>& list : {by_input, by_hidden}) {
    for (const FoundRow& one : list) mixed.push_back({one.row, (one.input + one.hidden) / 2});
  }
  // A score that is not finite has no place in an order, and would have no vote.
  std::erase_if(mixed, [](const Scored& one) { return !std::isfinite(one.score); });
  std::ranges::sort(mixed, ranks_before);
  // A row of both lists stands there twice, with the same cosines.
  const auto twice = std::ranges::unique(mixed, {}, &Scored::id);
  mixed.erase(twice.begin(), twice.end());
  mixed.resize(std::min(mixed.size(), count));
}

}  // namespace gossamer::sparse_engine
