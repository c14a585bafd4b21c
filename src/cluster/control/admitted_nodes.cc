// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/admitted_nodes.h"

#include <algorithm>

#include "base/check.h"
#include "cluster/control/records.h"

namespace gossamer::cluster {

host::Change AdmittedNodes::let_in(NodeId node, const std::string& token, std::int64_t now) {
  membership::NodeRecord record;
  record.set_node(node.value);
  record.set_token(token);
  record.set_enrolled(now);
  const bool is_new = records_.emplace(node, record).second;
  CHECK(is_new, node.value);
  return put_node(record);
}

std::uint64_t AdmittedNodes::let_in_by(const std::string& token) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(records_, [&](const auto& one) { return one.second.token() == token; }));
}

std::string AdmittedNodes::token_of(NodeId node) const {
  const auto found = records_.find(node);
  return found == records_.end() ? std::string() : found->second.token();
}

}  // namespace gossamer::cluster
