// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/link_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace gossamer::commands {
namespace {

// The least value that this fraction of all does not exceed; the mean where two values are the middle.
double quantile(const std::vector<double>& sorted, double share) {
  const auto count = static_cast<double>(sorted.size());
  const auto at = static_cast<std::size_t>(std::max(0.0, std::ceil(share * count) - 1));
  if (share == 0.5 && sorted.size() % 2 == 0) return (sorted[at] + sorted[at + 1]) / 2;
  return sorted[at];
}

// Seconds of a whole time that do not belong to the measured thing itself.
double not_its_own(LinkTrial trial, double round_trip) {
  switch (trial) {
    case LinkTrial::kMessage:
    case LinkTrial::kMessages: return round_trip;
    case LinkTrial::kControlBesideBulk: return round_trip / 2;
    case LinkTrial::kRoundTrip:
    case LinkTrial::kExchange: break;
  }
  return 0;
}

LinkFigures figures_of(const LinkTrialTimes& times, double round_trip, double rate_mbps) {
  CHECK(!times.seconds.empty(), name(times.trial));
  const bool transfer = times.trial == LinkTrial::kMessage || times.trial == LinkTrial::kMessages;
  std::vector<double> milliseconds;
  for (const double seconds : times.seconds) {
    milliseconds.push_back(1e3 * (seconds - not_its_own(times.trial, round_trip)));
  }
  LinkFigures figures{.trial = times.trial, .bytes = times.bytes, .cpu_seconds = times.cpu_seconds};
  if (transfer) {
    figures.first = milliseconds.front();
    if (milliseconds.size() > 1) milliseconds.erase(milliseconds.begin());
  }
  std::ranges::sort(milliseconds);
  figures.count = milliseconds.size();
  figures.least = milliseconds.front();
  figures.median = quantile(milliseconds, 0.5);
  figures.p90 = quantile(milliseconds, 0.9);
  figures.most = milliseconds.back();
  const double mean = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) /
                      static_cast<double>(milliseconds.size());
  figures.mbps =
      transfer ? static_cast<double>(times.bytes) * 8e-3 / mean : times.bulk_bytes_per_second * 8e-6;
  if (rate_mbps > 0) figures.share = figures.mbps / rate_mbps;
  return figures;
}

}  // namespace

std::vector<LinkFigures> link_figures(const std::vector<LinkTrialTimes>& times, double rate_mbps) {
  double round_trip = 0;
  for (const LinkTrialTimes& one : times) {
    if (one.trial == LinkTrial::kRoundTrip) round_trip = *std::ranges::min_element(one.seconds);
  }
  std::vector<LinkFigures> figures;
  for (const LinkTrialTimes& one : times) figures.push_back(figures_of(one, round_trip, rate_mbps));
  return figures;
}

}  // namespace gossamer::commands
