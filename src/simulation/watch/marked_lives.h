// SPDX-License-Identifier: Apache-2.0
//
// MarkedLives: what faults have done to the lives of a simulated fleet. Watches ask, as not every loss of a
// life is a fault of the protocol. Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <set>

#include "base/ids.h"
#include "cluster/control/coordinator.h"
#include "simulation/watch/durable.h"

namespace gossamer::simulation {

// What a fault does to a member: it may come back with all that it had, or not. kApart: its line to a
// coordinator is cut, so that others may have to go on without it.
enum class Struck { kForAWhile, kForGood, kApart };

class MarkedLives {
 public:
  void strike(Incarnation life, Struck how) {
    (how == Struck::kApart ? apart_ : struck_).insert(life);
    if (how == Struck::kForGood) taken_.insert(life);
  }
  // Liars have cost it its life, if it is fenced: most of its judges, or all with which it had a dispute.
  void framed(Incarnation life) { taken_.insert(life); }
  // From now on its word alone must not cost others their lives.
  void lies(Incarnation life) { liars_.insert(life); }
  // Its process may hold what it likes from now on.
  void is_hostile(Incarnation life) { hostile_.insert(life); }
  // A placement is installed. Others went on without those that were away and are fenced. From now on these
  // are as dead as others.
  void others_went_on(const Durable& durable);

  [[nodiscard]] bool struck(Incarnation life) const { return struck_.contains(life); }
  [[nodiscard]] bool liar(Incarnation life) const { return liars_.contains(life); }
  [[nodiscard]] bool hostile(Incarnation life) const { return hostile_.contains(life); }
  // Lives that a fault has taken: for good, or others went on without them, or liars cost them.
  [[nodiscard]] std::uint64_t taken() const { return taken_.size(); }
  // Those of them that are fenced, by the store or by the one that decides (null: nobody). A life that is
  // fenced for any other reason was there, or would have come back.
  [[nodiscard]] std::uint64_t taken_and_fenced(const Durable& durable,
                                               const cluster::Coordinator* decides) const;

 private:
  std::set<Incarnation> liars_;
  std::set<Incarnation> hostile_;
  std::set<Incarnation> struck_;
  std::set<Incarnation> apart_;
  std::set<Incarnation> taken_;
};

}  // namespace gossamer::simulation
