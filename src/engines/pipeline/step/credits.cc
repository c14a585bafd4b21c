// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/credits.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/check.h"

namespace gossamer::pipeline {

GrantedCredits::GrantedCredits(std::span<const NodeId> senders, const Options& options) : options_(options) {
  CHECK(options.room >= senders.size(), options.room, senders.size());
  CHECK(options.most_unused <= HeldCredits::kMostUnused, options.most_unused);
  for (const NodeId sender : senders) senders_[sender] = {};
}

std::vector<GrantedCredits::Grant> GrantedCredits::grant(std::uint64_t held) {
  std::set<NodeId> raised;
  while (held + unused_ < options_.room) {
    const auto poorest = std::ranges::min_element(
        senders_, {}, [](const auto& one) { return std::tuple(one.second.unused(), one.second.taken); });
    if (poorest == senders_.end() || poorest->second.unused() >= options_.most_unused) break;
    ++poorest->second.total;
    ++unused_;
    raised.insert(poorest->first);
  }
  std::vector<Grant> grants;
  for (const NodeId sender : raised) grants.push_back({.to = sender, .total = senders_.at(sender).total});
  return grants;
}

bool GrantedCredits::take(NodeId from) {
  const auto sender = senders_.find(from);
  if (sender == senders_.end() || sender->second.unused() == 0) return false;
  ++sender->second.taken;
  --unused_;
  return true;
}

HeldCredits::HeldCredits(std::span<const NodeId> receivers) {
  for (const NodeId receiver : receivers) receivers_[receiver] = {};
}

bool HeldCredits::granted(NodeId by, std::uint64_t total) {
  const auto receiver = receivers_.find(by);
  if (receiver == receivers_.end() || total < receiver->second.total) return false;
  if (total > receiver->second.sent + kMostUnused) return false;
  receiver->second.total = total;
  return true;
}

std::optional<NodeId> HeldCredits::use() {
  std::map<NodeId, Receiver>::iterator best = receivers_.end();
  for (auto one = receivers_.begin(); one != receivers_.end(); ++one) {
    const std::uint64_t left = one->second.total - one->second.sent;
    if (left == 0) continue;
    const bool is_better =
        best == receivers_.end() || left > best->second.total - best->second.sent ||
        (left == best->second.total - best->second.sent && one->second.sent < best->second.sent);
    if (is_better) best = one;
  }
  if (best == receivers_.end()) return std::nullopt;
  ++best->second.sent;
  return best->first;
}

bool HeldCredits::none() const {
  return std::ranges::all_of(receivers_, [](const auto& one) { return one.second.sent == one.second.total; });
}

}  // namespace gossamer::pipeline
