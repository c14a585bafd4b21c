// SPDX-License-Identifier: Apache-2.0
//
// RoomPatience says how long a run that is to end waits for room on the disk of its lead. Nodes offer what
// they have saved until it is stored. A large file may come for longer than the wait lasts. So the wait is
// over when a try fails at its end, and not while one is under way.
//
// Thread rule: one owner.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "node/supply_companion.h"

namespace gossamer::commands {

class RoomPatience {
 public:
  static constexpr Duration kPatience{30'000'000'000};

  // To be called again and again. `failing` is what cannot be stored of what nodes have saved at the end;
  // nothing before the end. True: the wait begins, and people are to be told.
  bool begins(const std::optional<node::SupplyCompanion::Failing>& failing, Instant now) {
    if (!failing) {
      since_.reset();
      last_.reset();
      return false;
    }
    last_ = *failing;
    const bool first = !since_;
    if (first) since_ = now;
    return first;
  }
  [[nodiscard]] bool over() const { return since_ && last_->at - *since_ >= kPatience; }
  // What the last try failed with; nothing while there is no wait.
  [[nodiscard]] std::optional<Error> why() const { return last_ ? std::optional(last_->last) : std::nullopt; }

 private:
  std::optional<Instant> since_;
  std::optional<node::SupplyCompanion::Failing> last_;
};

}  // namespace gossamer::commands
