// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/silences.h"

#include <vector>

namespace gossamer::cluster {

void Silences::watch(const std::set<NodeId>& peers, Instant now) {
  std::erase_if(silent_, [&](NodeId node) { return !peers.contains(node); });
  std::erase_if(looks_, [&](const auto& look) {
    if (peers.contains(look.first)) return false;
    by_time_.erase({look.second, look.first});
    return true;
  });
  for (const NodeId node : peers) {
    if (!silent_.contains(node) && looks_.emplace(node, now).second) by_time_.insert({now, node});
  }
}

const std::set<NodeId>& Silences::silent(Instant now, const LastSign& last_sign) {
  std::vector<NodeId> due(silent_.begin(), silent_.end());
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    due.push_back(by_time_.begin()->second);
    looks_.erase(due.back());
    by_time_.erase(by_time_.begin());
  }
  for (const NodeId node : due) {
    const Instant next = last_sign(node) + after_;
    if (next <= now) {
      silent_.insert(node);
      continue;
    }
    silent_.erase(node);
    looks_[node] = next;
    by_time_.insert({next, node});
  }
  return silent_;
}

}  // namespace gossamer::cluster
