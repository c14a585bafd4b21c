// SPDX-License-Identifier: Apache-2.0
#include "net/link/link.h"

#include <algorithm>

namespace gossamer::net {
namespace {

// The wait after the first, second, third ... failure: 0.1, 0.2, 0.4 ... 5 s; none before the first.
Duration backoff(int failures) {
  if (failures == 0) return {};
  return from_milliseconds(std::min(5000.0, 100.0 * static_cast<double>(1U << std::min(failures - 1, 10))));
}

}  // namespace

void LaneState::plan_next(Instant now, Rng& rng) {
  const auto wait = static_cast<double>(backoff(failures++).ns);
  // Without a random wait all nodes that lost the same peer would come back at the same moment.
  retry = now + Duration{static_cast<std::int64_t>(wait * (0.5 + 0.5 * static_cast<double>(rng.uniform())))};
}

}  // namespace gossamer::net
