// SPDX-License-Identifier: Apache-2.0
//
// LinkFigures: what the times of link_trials.h say. Pure functions on plain values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "node/cluster/link_trials.h"

namespace gossamer::node {

// Milliseconds of one measurement: of whole round trips, of transfers without the round trip that they and
// their answer need on an empty line, of rounds, of control messages one way.
struct LinkFigures {
  LinkTrial trial = LinkTrial::kRoundTrip;
  std::uint64_t bytes = 0;  // of a transfer, a round (to each peer), a control message
  std::uint64_t count = 0;  // of what median and the others are about
  double first = 0;         // of transfers: on the connection that was not used before; not among the others
  double least = 0;
  double median = 0;
  double p90 = 0;
  double most = 0;
  // 10^6 bits a second: of all transfers but the first, because the kernel may stop for some of them and not
  // for others; of the bulk beside control.
  double mbps = 0;
  double share = 0;        // of that in the line's rate; 0 where it is not known
  double cpu_seconds = 0;  // of this process, for all of them
};

// For each of `times`, which must not be empty. The least of kRoundTrip, if it is among them, is what an
// empty line takes; a control message's way back is taken to be half of that. `rate_mbps` 0: not known.
[[nodiscard]] std::vector<LinkFigures> link_figures(const std::vector<LinkTrialTimes>& times,
                                                    double rate_mbps);

}  // namespace gossamer::node
