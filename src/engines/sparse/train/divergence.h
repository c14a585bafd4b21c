// SPDX-License-Identifier: Apache-2.0
//
// A network diverges when its numbers grow beyond what a float holds. Then no later step mends it. Thread
// rule: plain functions.
#pragma once

#include <string>

#include "base/result.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

struct Divergence {
  std::string where = {};  // a step
  std::string got = {};
  std::string expected = {};
};
// The error of a run whose network has diverged, in one process and in many.
[[nodiscard]] Error network_diverged(Divergence seen);

// Whether an error is, or has in `got`, that of a network that has diverged. A process that leads others
// knows their errors as text.
[[nodiscard]] bool tells_of_divergence(const Error& error);

// Whether all weights are numbers. It reads each of them once.
[[nodiscard]] bool has_finite_weights(sparse::Network& network);

}  // namespace gossamer::sparse_engine
