// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/arrivals.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {

void Arrivals::wait(NodeId node, Instant now) {
  if (ready_.empty()) until_ = now + kTogether;
  ready_.insert(node);
}

void Arrivals::ready(NodeId node, Began began, Instant now) {
  const auto from = lives_.serves_from(node);
  if (began == Began::kHere && from && *from > now) {
    later_[node] = *from;
  } else {
    wait(node, now);
  }
}

void Arrivals::gone(NodeId node, std::optional<Instant> came, Instant now) {
  if (came) lives_.ended(node, *came, now);
  later_.erase(node);
  ready_.erase(node);
}

std::vector<NodeId> Arrivals::take(const std::set<NodeId>& joining, const std::function<bool(NodeId)>& hears,
                                   Instant now) {
  for (auto later = later_.begin(); later != later_.end();) {
    if (later->second > now) {
      ++later;
    } else {
      wait(later->first, now);
      later = later_.erase(later);
    }
  }
  if (ready_.empty()) return {};
  const bool others = std::ranges::any_of(
      joining, [this](NodeId node) { return !ready_.contains(node) && !later_.contains(node); });
  if (others && now < until_) return {};
  std::vector<NodeId> serve;
  for (const NodeId node : std::exchange(ready_, {})) {
    if (hears(node)) {
      serve.push_back(node);
    } else {
      wait(node, now);
    }
  }
  return serve;
}

std::optional<Instant> Arrivals::next_wakeup() const {
  std::optional<Instant> wake;
  if (!ready_.empty()) wake = until_;
  for (const auto& [node, from] : later_) wake = sooner(wake, from);
  return wake;
}

}  // namespace gossamer::cluster
