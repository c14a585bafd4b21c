// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/accusations.h"

namespace gossamer::cluster {

bool Accusations::says(NodeId by, NodeId of, const std::string& rule) {
  std::map<NodeId, std::string>& said = said_[by];
  if (said.size() >= kMostOfOne) return false;
  return said.try_emplace(of, rule).second;
}

bool Accusations::stands(NodeId by, NodeId of) const {
  const auto said = said_.find(by);
  return said != said_.end() && said->second.contains(of);
}

std::optional<Accusations::Verdict> Accusations::settle(const std::set<NodeId>& judges) const {
  std::map<NodeId, std::size_t> accusers;
  std::map<NodeId, std::string> rules;
  for (const auto& [by, said] : said_) {
    if (!judges.contains(by)) continue;
    for (const auto& [of, rule] : said) {
      ++accusers[of];
      rules.try_emplace(of, rule);
    }
  }
  for (const auto& [of, count] : accusers) {
    const bool serves = judges.contains(of);
    const std::size_t others = judges.size() - (serves ? 1 : 0);
    const bool enough = count >= 2 || (others == 1 && !serves);
    if (enough && 2 * count > others) return Verdict{.node = of, .rule = rules[of]};
  }
  return std::nullopt;
}

void Accusations::gone(NodeId node) {
  said_.erase(node);
  for (auto& [by, said] : said_) said.erase(node);
}

}  // namespace gossamer::cluster
