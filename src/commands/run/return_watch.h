// SPDX-License-Identifier: Apache-2.0
//
// ReturnWatch says how long a fleet that is to begin waits for members of the fleet before. Members that left
// while nobody led have saved what they held, and bring it when they are back. With the pieces of all of them
// the run goes on where it was, and without one from an older checkpoint.
//
// It waits for the owners of the last view once a piece of a newer step is there. Before that it waits for
// those that were there when nobody led, and that no lead has heard since: what they have may be newer. It
// waits at most as long as members go on without a coordinator. More steps than they did in that time cannot
// be lost.
//
// Thread rule: one owner.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::commands {

class ReturnWatch {
 public:
  static constexpr Duration kPatience{600'000'000'000};
  // The coordinator asks each second while a fleet could begin. After such a pause nobody was left to wait,
  // and the patience begins anew.
  static constexpr Duration kNobodyHere{60'000'000'000};

  // What is known when the lead asks.
  struct Facts {
    StepNumber start;                      // that the fleet would begin with
    std::optional<StepNumber> unfinished;  // a newer step, of which pieces are there
    std::set<NodeId> owners;               // by the last view; without nodes that were expelled
    std::set<NodeId> unheard = {};         // those of them that no lead has heard since
    std::set<NodeId> serving;              // have brought what they had
  };
  // Why the fleet does not begin yet, for people; "": it may begin.
  [[nodiscard]] std::string waits(const Facts& facts, Instant now);

 private:
  std::set<NodeId> came_;
  std::optional<Instant> since_;
  std::optional<Instant> asked_;
};

}  // namespace gossamer::commands
