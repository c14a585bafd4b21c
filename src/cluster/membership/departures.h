// SPDX-License-Identifier: Apache-2.0
//
// Departures: members that have lost a dispute (disputes.h), and have to go. They are heard, so the run need
// not lose what they alone hold: they hand it over first. Each stays until the others have everything, which
// shows when all rest. So all are asked to come to rest again and again. A rest may cut a hand-over short, so
// each time they have twice the time for it. Rests for other reasons do not push the next one away.
//
// That has an end:
// - kMostLooks rests have not found the others with everything, and no step was committed since the first.
// - The links of the member have ended in kMostSpoilt views, as one side says that the other breaks rules.
//   Nobody knows which of the two breaks them. If it was the same other one in all of these views, that one
//   may go in the member's place, if the run can lose it. This counts once for a life: else a member that
//   alone holds something could end others in turn.
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
  static constexpr Duration kFirstLook{1'000'000'000};  // after an Install; doubling
  static constexpr int kMostLooks = 10;                 // 1023 s in all
  static constexpr int kMostSpoilt = 3;

  // `quarrels_with`: the other one, if the member has one quarrel. All come to rest now.
  void add(NodeId node, std::optional<NodeId> quarrels_with);
  // The node has lost its life. Returns those in whose place it went. They stay.
  std::set<NodeId> gone(NodeId node);
  // Members are to come to rest, for any reason, and go on from it.
  void rest() { look_.reset(); }
  void installed(Instant now);
  // A step was committed: the run goes on with those that are still needed.
  void stepped();
  // The link of the two has ended in the view of this epoch, as one says that the other broke one more rule.
  void spoilt(NodeId by, NodeId of, Epoch epoch);

  [[nodiscard]] bool contains(NodeId node) const { return members_.contains(node); }
  [[nodiscard]] std::set<NodeId> nodes() const;
  // The one that may go in the member's place.
  [[nodiscard]] std::optional<NodeId> in_its_place(NodeId node) const;
  // Whether the member goes, needed or not.
  [[nodiscard]] bool is_over(NodeId node) const;
  // Whether it is time for a look. The caller then says what it does: all are asked to rest, or it has to
  // wait.
  [[nodiscard]] bool is_due(Instant now) const { return look_ && *look_ <= now; }
  void looks();
  void put_off(Instant now) { look_ = now + kFirstLook; }
  // Nothing: nobody has to go, or all rest.
  [[nodiscard]] std::optional<Instant> next_look() const { return look_; }

 private:
  struct Member {
    std::optional<NodeId> quarrels_with;
    int looks = 0;
    std::set<Epoch> spoilt = {};       // the first kMostSpoilt
    std::set<Epoch> spoilt_with = {};  // likewise, with `quarrels_with`
  };
  std::map<NodeId, Member> members_;
  std::set<NodeId> favoured_;  // others went in their place
  std::optional<Instant> look_;
  std::optional<Instant> planned_;  // when the next look would come, if nobody rested meanwhile
  Duration pause_ = kFirstLook;
};

}  // namespace gossamer::cluster
