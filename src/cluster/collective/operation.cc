// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/operation.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::cluster {

std::vector<std::uint64_t> equal_parts(std::uint64_t total, std::size_t ranks) {
  CHECK(ranks > 0);
  std::vector<std::uint64_t> parts(ranks, total / ranks);
  for (std::uint64_t i = 0; i < total % ranks; ++i) ++parts[i];
  return parts;
}

std::uint64_t window_chunks(const CollectiveLimits& limits, std::size_t ranks) {
  CHECK(ranks > 1);
  return std::clamp<std::uint64_t>(limits.waiting_bytes / limits.chunk_bytes / (ranks - 1), 2,
                                   limits.most_window);
}

bool goes_direct(const CollectiveLimits& limits, std::uint64_t elements, std::size_t ranks) {
  if (ranks <= 2) return true;
  // A product of all three could overflow, so the limit is divided.
  const std::uint64_t twice_the_pairs = static_cast<std::uint64_t>(ranks - 1) * (ranks - 2);
  return elements * sizeof(float) <= limits.direct_extra_bytes * ranks / twice_the_pairs;
}

}  // namespace gossamer::cluster
