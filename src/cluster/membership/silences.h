// SPDX-License-Identifier: Apache-2.0
//
// Silences: which of many peers have been silent for so long? Asked ten times a second, of peers that are
// almost never silent: so each is looked at only when it can have become so, and those that are, each time.
//
// Cost: of a peer that gives a sign of life every t, one look in each (`after` - t); nothing for the rest.
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
  // When it last gave a sign of life; what it says of one peer never falls.
  using LastSign = std::function<Instant(NodeId)>;

  explicit Silences(Duration after) : after_(after) {}

  // Of these, and no others; of those that are new no silence is known.
  void watch(const std::set<NodeId>& peers, Instant now);
  // Those that have given no sign for `after`. `now` never falls.
  [[nodiscard]] const std::set<NodeId>& silent(Instant now, const LastSign& last_sign);

 private:
  Duration after_;
  std::map<NodeId, Instant> looks_;  // when each is to be looked at; the silent are not here
  std::set<std::pair<Instant, NodeId>> by_time_;
  std::set<NodeId> silent_;
};

}  // namespace gossamer::cluster
