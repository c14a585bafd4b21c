// SPDX-License-Identifier: Apache-2.0
//
// NextView: the part of a coordinator that gathers what the next view changes, and writes it to the store.
//
// ViewTeller: the part that tells members of views and placements. A member that knows the view before is
// told the difference, and others are told several, or the whole view. The coordinator's other parts decide
// what there is to tell.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstddef>
#include <deque>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/membership/fenced_incarnations.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {

// ViewHistory: the last differences of a view, one for each epoch. The last one leads to the view's epoch.
class ViewHistory {
 public:
  static constexpr std::size_t kMost = 256;

  void add(const membership::Change& change);
  // The differences from the view of that epoch on. None: it is 0, too old, or the view's.
  [[nodiscard]] std::vector<membership::Change> since(Epoch epoch) const;

 private:
  std::deque<membership::Change> changes_;
};

class NextView {
 public:
  explicit NextView(const Leadership& leadership);

  // The coordinator before fenced members, and its view does not list them yet.
  void take_up();
  // A member is fenced.
  void gone(net::PeerId peer);
  // The store's epoch rises before any entry of the next epoch is written. If only a part of these entries
  // gets there, the successor sees that an epoch was begun.
  void reserve_epoch();
  enum class Joins { kMayServe, kStay };
  // Begins the next epoch. Returns what differs.
  [[nodiscard]] membership::Change begin(Joins joins);

 private:
  [[nodiscard]] membership::Change difference(Joins joins);

  const CoordinatorOptions& options_;
  LedRun& run_;
  CoordinatorOutbox& outbox_;
  bool epoch_reserved_ = false;
  std::vector<FencedIncarnations::Run> fenced_since_;  // since the view's epoch
};

class ViewTeller {
 public:
  explicit ViewTeller(const Leadership& leadership);

  // Whether members that learn of the view now are to come to rest for it. kAfterStep: once the step that is
  // open has ended.
  enum class Rest { kYes, kAfterStep, kNo };
  // The run's view has changed by this. All that know a view are told.
  void changed(const membership::Change& change, Rest rest);
  // Brings the member, whose view is of that epoch (0: it has none), to the run's view.
  void tell_view(LedMember& member, Epoch has, Rest rest);
  // The run has another placement. All that know the view are told.
  void placed();
  // The last placement.
  void tell_placement(const LedMember& member);
  // Likewise to a member that came without it, if it is for this life.
  void tell_placement_again(const LedMember& member, const membership::Here& here);
  void tell_stop(const LedMember& member, const membership::StopAsked& asked);
  // The member need not wait for another to take over what it holds.
  void release(const LedMember& member, std::string_view why);

 private:
  // A placement names nodes, and a node may have begun a new life since. In a run whose members freeze, that
  // life has nothing of what the one before had. It is told once it is in the view that is placed.
  [[nodiscard]] bool placement_is_for(const LedMember& member) const;
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const CoordinatorOptions& options_;
  LedRun& run_;
  CoordinatorOutbox& outbox_;
  ViewHistory history_;
};

}  // namespace gossamer::cluster
