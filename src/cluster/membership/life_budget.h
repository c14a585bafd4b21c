// SPDX-License-Identifier: Apache-2.0
//
// LifeBudget: how many lives a node may begin, and when one may serve. Each life of a member that serves
// costs the others two changes of the view, in which they rest.
// - A node may begin six lives one after another, and then one every ten seconds.
// - After two lives that came and ended within 60 s, the next one waits before it may serve. It waits 0.5 s
//   from the end of the last one, then 1 s, 2 s ... 60 s.
//
// A process of this program waits so long by itself between lives that end soon; this holds back others.
//
// Memory: one entry for each node that has begun or ended a life lately. Thread rule: one owner.
#pragma once

#include <map>
#include <optional>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class LifeBudget {
 public:
  static constexpr double kMost = 6;
  static constexpr Duration kEvery{10'000'000'000};
  static constexpr Duration kShortLife{60'000'000'000};  // also the longest wait
  static constexpr Duration kFirstWait{500'000'000};

  // Whether the node may begin a life now. If so, that life is counted. Time never goes back.
  [[nodiscard]] bool take(NodeId node, Instant now);
  // A life of the node that came has ended.
  void ended(NodeId node, Instant began, Instant now);
  // From when on the node's next life may serve; nothing: at once.
  [[nodiscard]] std::optional<Instant> serves_from(NodeId node) const;

 private:
  struct Left {
    double lives = kMost;
    Instant when;
  };
  struct Short {
    int lives = 0;  // in a row
    Instant serves_from;
  };
  [[nodiscard]] static double left(const Left& budget, Instant now);

  std::map<NodeId, Left> left_;
  std::map<NodeId, Short> short_;
};

}  // namespace gossamer::cluster
