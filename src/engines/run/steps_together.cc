// SPDX-License-Identifier: Apache-2.0
#include "engines/run/steps_together.h"

#include <algorithm>
#include <vector>

namespace gossamer::engine {

std::set<NodeId> not_together(const std::map<NodeId, std::uint64_t>& applied) {
  std::set<NodeId> odd;
  std::vector<std::uint64_t> sorted;
  for (const auto& [node, steps] : applied) sorted.push_back(steps);
  std::ranges::sort(sorted);
  if (sorted.empty() || sorted.back() - sorted.front() <= 1) return odd;
  const std::uint64_t middle = sorted[(sorted.size() - 1) / 2];
  const auto before =
      std::ranges::count_if(sorted, [&](auto one) { return one < middle && middle - one == 1; });
  const auto behind =
      std::ranges::count_if(sorted, [&](auto one) { return one > middle && one - middle == 1; });
  for (const auto& [node, steps] : applied) {
    const bool far = steps < middle ? middle - steps > 1 : steps - middle > 1;
    const bool fewer = steps != middle && before > 0 && behind > 0 && (steps < middle) == (before < behind);
    if (far || fewer) odd.insert(node);
  }
  return odd;
}

}  // namespace gossamer::engine
