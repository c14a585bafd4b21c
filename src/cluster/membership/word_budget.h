// SPDX-License-Identifier: Apache-2.0
//
// WordBudget: how much one member may say to its coordinator. A word costs one, and one more for each 4 KiB.
// kAtOnce may be spent in a moment, and then kPerSecond. Each word takes the time of the one coordinator, and
// most have an answer, which waits there until the member has read it.
//
// A member that was cut off says its requests once more when it is back (request_budget.h), and at most the
// beats of 10 s, after which its link is known to be broken. Otherwise it says some ten words a second.
//
// Thread rule: plain value, one owner.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace gossamer::cluster {

class WordBudget {
 public:
  static constexpr double kAtOnce = 16'384;
  static constexpr double kPerSecond = 2048;
  static constexpr double kBytes = 4096;
  // A Here costs more: its answer is the view, and other members hear of a node that joins.
  static constexpr double kOfHere = 64;

  // Pays for a word of so many bytes. False: it costs more than is left. Time never goes back.
  [[nodiscard]] bool take(std::uint64_t bytes, Instant now) {
    return pay(1 + static_cast<double>(bytes) / kBytes, now);
  }
  // Likewise for a Here, which is taken as a word already.
  [[nodiscard]] bool take_here(Instant now) { return pay(kOfHere, now); }

 private:
  bool pay(double cost, Instant now) {
    left_ = std::min(kAtOnce, left_ + (now - when_).seconds() * kPerSecond);
    when_ = now;
    if (left_ < cost) return false;
    left_ -= cost;
    return true;
  }

  double left_ = kAtOnce;
  Instant when_;
};

}  // namespace gossamer::cluster
