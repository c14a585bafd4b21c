// SPDX-License-Identifier: Apache-2.0
//
// Watch: the part of a coordinator that knows which members live. It hears their signs of life, weighs what
// they say of each other, and names the members that are to be fenced. The coordinator fences them.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/membership/disputes.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// Members that are to be fenced together, and why.
struct Fencing {
  std::vector<NodeId> nodes;
  std::string_view why;
};

class Watch {
 public:
  static constexpr Duration kHereTime{10'000'000'000};   // from Begin, or a takeover, to Here
  static constexpr Duration kMissingFor{1'000'000'000};  // a living member finds a new coordinator sooner
  static constexpr Duration kTogether{50'000'000};       // deaths so close are one change of the view
  static constexpr Duration kAllSilent{300'000'000};     // nobody is heard: then this process is cut off

  // `links` outlives this part.
  Watch(const Leadership& leadership, net::Links& links, Instant now);

  // The member has begun, or was found in the store. It has kHereTime to come.
  void expect(LedMember& member, Instant now);
  // The member said Here.
  void come(LedMember& member);
  // The member said something, or its link came up.
  void heard(LedMember& member, Instant now);
  // A connection of the member closed.
  void closed(LedMember& member, Instant now);
  // Sets the member's wake-up by what is known of it. Called once an event of the member is dealt with.
  void schedule(LedMember& member);
  // The member is about to be removed from the run.
  void forget(const LedMember& member);

  // The member `by` does not reach these others now.
  void says(NodeId by, const std::set<NodeId>& others, Instant now);
  // Members that did not come after a takeover, and that nobody reaches.
  [[nodiscard]] std::vector<NodeId> missing(Instant now);
  // Members that have to go because they and others do not reach each other.
  [[nodiscard]] std::vector<NodeId> unreachable(Instant now);
  // Members that have not come in time, or are silent.
  [[nodiscard]] std::vector<Fencing> due(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  void wake(LedMember& member, std::optional<Instant> when);
  [[nodiscard]] bool is_heard(NodeId node, Instant now) const;
  [[nodiscard]] std::optional<Instant> nobody_fenced_until(Instant now);
  [[nodiscard]] Instant last_due(Instant with, Instant now) const;
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const CoordinatorOptions& options_;
  LedRun& run_;
  CoordinatorOutbox& outbox_;
  net::Links& links_;
  Disputes disputes_;
  std::set<std::pair<Instant, NodeId>> wakes_;
  Instant last_heard_;    // when any member was
  bool cut_off_ = false;  // no member is heard: no verdict counts until one is again
  Instant spared_until_;  // and no verdict counts until here
};

}  // namespace gossamer::cluster
