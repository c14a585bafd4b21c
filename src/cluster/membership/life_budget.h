// SPDX-License-Identifier: Apache-2.0
//
// LifeBudget: how many lives a node may begin. Each life of a member costs the others two changes of the
// view, in which they rest. So a node may begin a few lives one after another, and then one every ten
// seconds. A process of this program waits longer by itself between lives that end soon; this holds back
// others.
//
// Memory: one entry for each node whose budget is not full. Thread rule: one owner.
#pragma once

#include <map>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class LifeBudget {
 public:
  static constexpr double kMost = 6;
  static constexpr Duration kEvery{10'000'000'000};

  // Whether the node may begin a life now. If so, that life is counted. Time never goes back.
  [[nodiscard]] bool take(NodeId node, Instant now);

 private:
  struct Left {
    double lives = kMost;
    Instant when;
  };
  [[nodiscard]] static double left(const Left& budget, Instant now);

  std::map<NodeId, Left> left_;
};

}  // namespace gossamer::cluster
