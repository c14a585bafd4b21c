// SPDX-License-Identifier: Apache-2.0
//
// Departures: members that have lost a dispute (disputes.h), and have to go. They are heard, so the run need
// not lose what they alone hold: they hand it over first. Each stays until the others have everything, which
// shows when all rest. So all are asked to come to rest again and again. A rest may cut a hand-over short, so
// each time they have twice the time for it.
//
// That has an end: the caller's patience without a committed step, or kMostSpoilt views in which a link of
// the member ended over rules that were broken. Nobody knows which of the two breaks them, so the others may
// go in its place, if the run can lose them. This counts once for a life: else one that alone holds something
// could end others in turn.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class Departures {
 public:
  static constexpr std::string_view kWhy = "it and others cannot reach each other";
  static constexpr Duration kFirstLook{1'000'000'000};  // after an Install; doubling, up to:
  static constexpr Duration kLastLook{600'000'000'000};
  static constexpr int kMostSpoilt = 3;

  // `with`: the other members of the dispute. All come to rest now.
  void add(NodeId node, const std::set<NodeId>& with, Instant now);
  // The node has lost its life. Returns those in whose place it went. They stay.
  std::set<NodeId> gone(NodeId node);
  // Members go on from a rest.
  void installed(Instant now);
  // A step was committed: the run goes on with those that are still needed.
  void stepped(Instant now);
  // The link of the two has ended in another view, as one says that the other broke one more rule.
  void spoilt(NodeId by, NodeId of);

  [[nodiscard]] bool contains(NodeId node) const { return members_.contains(node); }
  [[nodiscard]] std::set<NodeId> nodes() const;
  // The other members of the dispute, if these may go in its place; else none.
  [[nodiscard]] std::set<NodeId> in_its_place(NodeId node) const;
  // Whether the member goes, needed or not: no step was committed for so long, or too many views are spoilt.
  [[nodiscard]] bool is_over(NodeId node, Duration patience, Instant now) const;
  // Whether all are to come to rest again; true once for each look.
  [[nodiscard]] bool take_due(Instant now);
  // A look that was due has to wait.
  void put_off(Instant now) { look_ = now + kFirstLook; }
  // Nothing: nobody has to go, or all rest for them.
  [[nodiscard]] std::optional<Instant> next_look() const { return look_; }

 private:
  struct Member {
    std::set<NodeId> with;
    Instant since;
    int spoilt = 0;  // views
  };
  std::map<NodeId, Member> members_;
  std::set<NodeId> favoured_;  // others went in their place
  std::optional<Instant> look_;
  Duration pause_ = kFirstLook;
};

}  // namespace gossamer::cluster
