// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/life_budget.h"

#include <algorithm>

namespace gossamer::cluster {

double LifeBudget::left(const Left& budget, Instant now) {
  return std::min(kMost, budget.lives + (now - budget.when).seconds() / kEvery.seconds());
}

bool LifeBudget::take(NodeId node, Instant now) {
  std::erase_if(left_, [&](const auto& one) { return left(one.second, now) >= kMost; });
  const auto known = left_.find(node);
  const double lives = known == left_.end() ? kMost : left(known->second, now);
  if (lives < 1) return false;
  left_[node] = {.lives = lives - 1, .when = now};
  return true;
}

}  // namespace gossamer::cluster
