// SPDX-License-Identifier: Apache-2.0
#include "cluster/collective/operation.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::cluster {

std::vector<std::uint64_t> equal_parts(std::uint64_t total, std::size_t ranks, std::uint64_t multiple) {
  CHECK(ranks > 0 && multiple > 0, ranks, multiple);
  const std::uint64_t pieces = (total + multiple - 1) / multiple;
  std::vector<std::uint64_t> parts(ranks);
  std::uint64_t left = total;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t own = pieces / ranks + (rank < pieces % ranks ? 1 : 0);
    parts[rank] = std::min(own * multiple, left);
    left -= parts[rank];
  }
  return parts;
}

std::uint64_t chunk_size(const CollectiveLimits& limits, std::size_t ranks) {
  CHECK(ranks > 1);
  const std::uint64_t unit = limits.least_chunk_bytes;
  const std::uint64_t half_a_window = limits.waiting_bytes / (ranks - 1) / 2;
  return std::clamp(half_a_window / unit * unit, unit, limits.chunk_bytes);
}

std::uint64_t window_chunks(const CollectiveLimits& limits, std::size_t ranks) {
  const std::uint64_t each = limits.waiting_bytes / (ranks - 1);
  return std::clamp<std::uint64_t>(each / chunk_size(limits, ranks), 2, limits.most_window);
}

bool goes_direct(const CollectiveLimits& limits, std::uint64_t bytes, std::size_t ranks) {
  if (ranks <= 2) return true;
  // A product of all three could overflow, so the limit is divided.
  const std::uint64_t twice_the_pairs = static_cast<std::uint64_t>(ranks - 1) * (ranks - 2);
  return bytes <= limits.direct_extra_bytes * ranks / twice_the_pairs;
}

}  // namespace gossamer::cluster
