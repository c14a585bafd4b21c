// SPDX-License-Identifier: Apache-2.0
//
// AdmittedNodes: the nodes that tokens have let into the run, and those that were expelled
// (docs/protocols/admission.md). The store keeps a record of each, so that the next coordinator knows them.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace gossamer::cluster {

class AdmittedNodes {
 public:
  explicit AdmittedNodes(std::map<NodeId, membership::NodeRecord> records) : records_(std::move(records)) {}

  // Takes up a node that the token let in, `now` in seconds since 1970-01-01 UTC. Returns its record
  // for the store. Requires a number that was not given before.
  [[nodiscard]] membership::NodeRecord let_in(NodeId node, const std::string& token, std::int64_t now);
  // How many nodes the token has let in.
  [[nodiscard]] std::uint64_t let_in_by(const std::string& token) const;
  // How many nodes each token has let in, by its id.
  [[nodiscard]] std::map<std::string, std::uint64_t> let_in_by_each() const;
  // The nodes that the token has let in, expelled ones too.
  [[nodiscard]] std::vector<NodeId> nodes_of(const std::string& token) const;
  // The id of the token that let the node in; empty if that is not known.
  [[nodiscard]] std::string token_of(NodeId node) const;
  // Expels a node, also one without a record. Returns its record for the store; nothing if it is
  // expelled.
  [[nodiscard]] std::optional<membership::NodeRecord> expel(NodeId node);
  [[nodiscard]] std::set<NodeId> expelled() const;

 private:
  std::map<NodeId, membership::NodeRecord> records_;
};

}  // namespace gossamer::cluster
