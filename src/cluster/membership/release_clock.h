// SPDX-License-Identifier: Apache-2.0
//
// ReleaseClock: how long members that drain wait for a member that joins, and could take their things over.
// They wait ten seconds in all, whichever member joins and however often it begins anew. A member that joins
// and is never ready could else keep them until their machines are taken away, and nothing would be saved.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <optional>

#include "base/time.h"

namespace gossamer::cluster {

class ReleaseClock {
 public:
  static constexpr Duration kWaits{10'000'000'000};

  // Members drain, and no other member takes their things. Returns whether they may go. `joins`: somebody
  // does.
  [[nodiscard]] bool may_go(bool joins, Instant now) {
    if (!joins) return true;
    if (!until_) until_ = now + kWaits;
    return now >= *until_;
  }
  // Nobody waits any more.
  void end() {
    until_.reset();
    told_ = false;
  }
  // Whether it is time to ask again; true once.
  [[nodiscard]] bool take_due(Instant now) {
    const bool due = next_look() && *next_look() <= now;
    told_ = told_ || due;
    return due;
  }
  [[nodiscard]] std::optional<Instant> next_look() const { return told_ ? std::nullopt : until_; }

 private:
  std::optional<Instant> until_;
  bool told_ = false;
};

}  // namespace gossamer::cluster
