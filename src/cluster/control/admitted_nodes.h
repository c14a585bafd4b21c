// SPDX-License-Identifier: Apache-2.0
//
// AdmittedNodes: the nodes that tokens have let into the run (docs/protocols/admission.md). The store keeps a
// record of each, so that the next coordinator knows them.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/ids.h"
#include "host/api/store.h"

namespace gossamer::cluster {

class AdmittedNodes {
 public:
  explicit AdmittedNodes(std::map<NodeId, membership::NodeRecord> records) : records_(std::move(records)) {}

  // Takes up a node that the token let in, `now` in seconds since 1970-01-01 UTC. Returns the change of the
  // store. Requires a number that was not given before.
  [[nodiscard]] host::Change let_in(NodeId node, const std::string& token, std::int64_t now);
  // How many nodes the token has let in.
  [[nodiscard]] std::uint64_t let_in_by(const std::string& token) const;
  // The id of the token that let the node in; empty if none did.
  [[nodiscard]] std::string token_of(NodeId node) const;

 private:
  std::map<NodeId, membership::NodeRecord> records_;
};

}  // namespace gossamer::cluster
