// SPDX-License-Identifier: Apache-2.0
//
// LinkFigures are what the times of link_trials.h say. Thread rule: pure
// functions on plain values, any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "commands/bench/link_trials.h"

namespace gossamer::commands {

// The figures of one measurement. Times are milliseconds of:
//
//   kRoundTrip            whole round trips
//   kMessage, kMessages   transfers, without the round trip that they and their answer need on an empty line
//   kExchange             rounds
//   kControlBesideBulk    control messages, one way
struct LinkFigures {
  LinkTrial trial = LinkTrial::kRoundTrip;
  std::uint64_t bytes = 0;  // of a transfer, a round (to each peer), a control message
  std::uint64_t count = 0;  // number of values behind median and the others
  // The first transfer, on a connection that was not used before. It is not among the others.
  double first = 0;
  double least = 0;
  double median = 0;
  double p90 = 0;
  double most = 0;
  // 10^6 bits a second. For transfers, of all but the first together, because the kernel may stop for some of
  // them and not for others. For kControlBesideBulk, of the bulk.
  double mbps = 0;
  double share = 0;        // fraction of the line's rate; 0 where it is not known
  double cpu_seconds = 0;  // processor time of this process, for all of them
};

// One for each of `times`, none of which may be empty. The least time of kRoundTrip, if that is among them,
// is what an empty line takes. A control message's way back counts as half of it. `rate_mbps` 0: not known.
[[nodiscard]] std::vector<LinkFigures> link_figures(const std::vector<LinkTrialTimes>& times,
                                                    double rate_mbps);

}  // namespace gossamer::commands
