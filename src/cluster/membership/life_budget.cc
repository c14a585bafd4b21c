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

void LifeBudget::ended(NodeId node, Instant began, Instant now) {
  std::erase_if(short_, [&](const auto& one) { return now - one.second.serves_from > kShortLife; });
  if (now - began >= kShortLife) {
    short_.erase(node);
    return;
  }
  Short& lives = short_.try_emplace(node, Short{.lives = 0, .serves_from = now}).first->second;
  ++lives.lives;
  const int doublings = std::min(lives.lives - 2, 7);
  const Duration wait = doublings < 0 ? Duration{} : Duration{kFirstWait.ns << doublings};
  lives.serves_from = now + Duration{std::min(wait.ns, kShortLife.ns)};
}

std::optional<Instant> LifeBudget::serves_from(NodeId node) const {
  const auto found = short_.find(node);
  return found == short_.end() ? std::nullopt : std::optional(found->second.serves_from);
}

}  // namespace gossamer::cluster
