// SPDX-License-Identifier: Apache-2.0
#include "simulation/fault.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "net/link/connection.h"

namespace gossamer::simulation {

std::string_view name(FaultKind kind) {
  for (const FaultName& one : kFaults) {
    if (one.kind == kind) return one.name;
  }
  CHECK(false, static_cast<int>(kind));
  return {};
}

std::optional<FaultKind> fault_of(std::string_view name) {
  for (const FaultName& one : kFaults) {
    if (one.name == name) return one.kind;
  }
  return std::nullopt;
}

namespace {

// A lane that is cut by itself is noticed by its silence. So a third of the cuts each end before, within a
// second of it, and long after it.
double lane_cut(double seconds, std::size_t number) {
  const double silence = net::Connection::kSilence.seconds();
  const double fraction = std::fmod(seconds, 1.0);
  if (number % 3 == 1) return silence - 0.5 + fraction;
  if (number % 3 == 2) return silence * (2 + 10 * fraction);
  return std::min(seconds, silence - 1);
}

}  // namespace

std::vector<Fault> draw_faults(std::uint64_t seed, const std::vector<FaultKind>& kinds, std::size_t count,
                               Instant from, Instant to, Longest longest) {
  CHECK(!kinds.empty());
  Rng rng(seed, Purpose::kFault, 9);
  const auto span = static_cast<double>((to - from).ns);
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < count; ++i) {
    Fault fault;
    fault.kind = kinds[rng.below(kinds.size())];
    fault.at = from + Duration{static_cast<std::int64_t>(span * static_cast<double>(rng.uniform()))};
    // From a blink to much longer than most time-outs, short ones as often as long ones. A long one outlasts
    // all that the protocol waits for, but for the patience of members.
    const bool endures = longest == Longest::kLong && rng.below(16) == 0;
    const double exponent = endures ? 1.3 + 0.78 * static_cast<double>(rng.uniform())
                                    : -1.3 + 2.6 * static_cast<double>(rng.uniform());
    double seconds = 1;
    for (double e = exponent; e > 0; e -= 0.1) seconds *= 1.2589254117941673;
    for (double e = exponent; e < 0; e += 0.1) seconds /= 1.2589254117941673;
    // A member that ended for good is replaced sooner.
    const bool ends = fault.kind == FaultKind::kKill || fault.kind == FaultKind::kPowerOff;
    // An engine that hangs is waited for as long as members are.
    if (endures && fault.kind == FaultKind::kHang) seconds *= 6;
    // A liar needs at least 7 s of accusations to cost a life.
    const bool accuses = fault.kind == FaultKind::kLie;
    if (longest == Longest::kLong && fault.kind == FaultKind::kCutLane) seconds = lane_cut(seconds, i);
    fault.lasts = from_seconds(ends ? seconds / 4 : accuses ? seconds + 10 : seconds);
    fault.member = rng.next_u64();
    fault.other = rng.next_u64();
    // Among faults at the same time the first drawn comes first.
    const auto later = std::ranges::upper_bound(faults, fault.at, {}, &Fault::at);
    faults.insert(later, fault);
  }
  return faults;
}

void lose_some_coordinators(std::vector<Fault>& faults) {
  for (Fault& fault : faults) {
    if (fault.kind == FaultKind::kKillCoordinator && (fault.other >> 40) % 6 == 0)
      fault.kind = FaultKind::kLoseCoordinator;
  }
}

}  // namespace gossamer::simulation
