// SPDX-License-Identifier: Apache-2.0
//
// Arrivals: when joining members may serve. A change of the view costs all members a rest, so members that
// arrive together change it once:
// - A member that is ready waits for the others that join, at most kTogether after the first one was ready.
//   Where nobody else joins it does not wait.
// - A node whose lives end soon waits before its next life may serve (life_budget.h). Nobody waits for it.
//
// Cost: linear in the nodes that wait. Thread rule: one owner.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/membership/life_budget.h"

namespace gossamer::cluster {

class Arrivals {
 public:
  static constexpr Duration kTogether{1'000'000'000};

  // Whether the node may begin a life now. If so, that life is counted.
  [[nodiscard]] bool may_begin(NodeId node, Instant now) { return lives_.take(node, now); }
  // A joining member said Ready. kBefore: its life began with another coordinator, and does not wait for
  // lives before.
  enum class Began { kHere, kBefore };
  void ready(NodeId node, Began began, Instant now);
  // The life of the node has ended. `came`: when it began, if it came.
  void gone(NodeId node, std::optional<Instant> came, Instant now);
  // The members that are to serve with the next change, each once. Nobody, while they wait for others.
  // One that is not heard comes later. `joining`: the members that join, and were not among those.
  [[nodiscard]] std::vector<NodeId> take(const std::set<NodeId>& joining,
                                         const std::function<bool(NodeId)>& hears, Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  void wait(NodeId node, Instant now);

  LifeBudget lives_;
  std::map<NodeId, Instant> later_;  // ready, after lives that ended soon
  std::set<NodeId> ready_;
  Instant until_;  // if anybody is ready: they wait for others until then
};

}  // namespace gossamer::cluster
