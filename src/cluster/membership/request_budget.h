// SPDX-License-Identifier: Apache-2.0
//
// RequestBudget: how many requests (leases, claims, commits) one member may make: kAtOnce, and then
// kPerSecond. Each is a write of the store, for which the others' requests wait. A member repeats what was
// not answered when its coordinator is back, so it may make many at once.
//
// Thread rule: plain value, one owner.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace gossamer::cluster {

class RequestBudget {
 public:
  static constexpr double kAtOnce = 4096;
  static constexpr double kPerSecond = 1024;

  // Takes one request from the budget. False: there is none left. Time never goes back.
  [[nodiscard]] bool take(Instant now) {
    left_ = std::min(kAtOnce, left_ + (now - when_).seconds() * kPerSecond);
    when_ = now;
    if (left_ < 1) return false;
    --left_;
    return true;
  }
  // How many requests are taken and not given back by time.
  [[nodiscard]] double taken() const { return kAtOnce - left_; }

 private:
  double left_ = kAtOnce;
  Instant when_;
};

}  // namespace gossamer::cluster
