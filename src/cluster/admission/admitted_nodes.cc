// SPDX-License-Identifier: Apache-2.0
#include "cluster/admission/admitted_nodes.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::cluster {

membership::NodeRecord AdmittedNodes::let_in(NodeId node, const std::string& token, std::int64_t now) {
  membership::NodeRecord record;
  record.set_node(node.value);
  record.set_token(token);
  record.set_enrolled(now);
  const bool is_new = records_.emplace(node, record).second;
  CHECK(is_new, node.value);
  return record;
}

std::uint64_t AdmittedNodes::let_in_by(const std::string& token) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(records_, [&](const auto& one) { return one.second.token() == token; }));
}

std::map<std::string, std::uint64_t> AdmittedNodes::let_in_by_each() const {
  std::map<std::string, std::uint64_t> nodes;
  for (const auto& [node, record] : records_) {
    if (!record.token().empty()) ++nodes[record.token()];
  }
  return nodes;
}

std::vector<NodeId> AdmittedNodes::nodes_of(const std::string& token) const {
  std::vector<NodeId> nodes;
  for (const auto& [node, record] : records_) {
    if (record.token() == token) nodes.push_back(node);
  }
  return nodes;
}

std::string AdmittedNodes::token_of(NodeId node) const {
  const auto found = records_.find(node);
  return found == records_.end() ? std::string() : found->second.token();
}

std::optional<membership::NodeRecord> AdmittedNodes::expel(NodeId node) {
  membership::NodeRecord& record = records_[node];
  if (record.expelled()) return std::nullopt;
  record.set_node(node.value);
  record.set_expelled(true);
  return record;
}

std::set<NodeId> AdmittedNodes::expelled() const {
  std::set<NodeId> nodes;
  for (const auto& [node, record] : records_) {
    if (record.expelled()) nodes.insert(node);
  }
  return nodes;
}

}  // namespace gossamer::cluster
