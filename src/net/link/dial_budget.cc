// SPDX-License-Identifier: Apache-2.0
#include "net/link/dial_budget.h"

#include <algorithm>

namespace gossamer::net {

double DialBudget::left(const Left& budget, Instant now) {
  return std::min(kAtOnce, budget.dials + (now - budget.when).seconds() / kEvery.seconds());
}

std::optional<Instant> DialBudget::take(const host::Endpoint& at, Instant now) {
  std::erase_if(left_, [&](const auto& one) { return left(one.second, now) >= kAtOnce; });
  const auto known = left_.find(at);
  const double dials = known == left_.end() ? kAtOnce : left(known->second, now);
  // A little less counts as one, so that rounding wakes nobody twice.
  if (dials < 0.999) return now + from_seconds((1 - dials) * kEvery.seconds());
  left_[at] = {.dials = std::max(0.0, dials - 1), .when = now};
  return std::nullopt;
}

}  // namespace gossamer::net
