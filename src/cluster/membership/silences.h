// SPDX-License-Identifier: Apache-2.0
//
// Silences: which of many peers have been silent for so long? It is asked ten times a second about peers that
// are almost never silent. So it looks at a peer only when that peer can have become silent, and at silent
// ones each time.
//
// Cost: one look in each (`after` - t) at a peer that gives a sign of life every t; nothing for the rest.
// Thread rule: one owner.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class Silences {
 public:
  // When the peer last gave a sign of life. The answers about one peer never fall.
  using LastSign = std::function<Instant(NodeId)>;

  explicit Silences(Duration after) : after_(after) {}

  // Watches these peers and no others. New peers are not known to be silent.
  void watch(const std::set<NodeId>& peers, Instant now);
  // The peers that have given no sign for `after`. `now` never falls.
  [[nodiscard]] const std::set<NodeId>& silent(Instant now, const LastSign& last_sign);

 private:
  Duration after_;
  std::map<NodeId, Instant> looks_;  // when each is to be looked at; the silent are not here
  std::set<std::pair<Instant, NodeId>> by_time_;
  std::set<NodeId> silent_;
};

}  // namespace gossamer::cluster
