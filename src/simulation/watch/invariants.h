// SPDX-License-Identifier: Apache-2.0
//
// Invariants: conditions that must hold whatever happens, watched from outside with a view of all processes
// at once. The first one that breaks is kept, with what was seen. Thread rule: the simulation's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/lease_table.h"

namespace gossamer::simulation {

class Invariants {
 public:
  // Whether an incarnation is fenced in the store. From then on it counts for nothing.
  using Fenced = std::function<bool(Incarnation)>;
  explicit Invariants(Fenced fenced) : fenced_(std::move(fenced)) {}

  // Every process with an epoch has the same view of it, and the same installed decision.
  void saw_view(Epoch epoch, const std::string& bytes);
  void saw_install(Epoch epoch, const std::string& bytes);
  // Only one living holder takes a step of a thing.
  void applied(std::uint64_t thing, StepNumber step, Incarnation by);
  // No two incarnations count the same id of a step.
  void counted(const cluster::Claim& claim);
  // A member that is not fenced believes that it has a lease. No other member believes that it has any of its
  // keys.
  void believes(const cluster::LeaseKeys& keys, Incarnation holder,
                const std::function<bool(Incarnation, const cluster::LeaseKeys&)>& still_believes);
  // A member has taken up the placement of an epoch: these things, as far as `next`.
  void took_up(Incarnation by, Epoch installed, const std::vector<std::uint64_t>& things, StepNumber next);
  // A process that has been replaced changes nothing in the store.
  void wrote(Generation writer, Generation newest);
  // The store's epoch never falls.
  void stored(Epoch epoch);
  // The run's committed step never falls. No step is committed without a living copy. A member that has taken
  // up the placement in force, and is not fenced, has come so far with all its things. (Things of a dead
  // holder are replayed. So a thing may have no copy between a death and the next placement.)
  void committed(StepNumber step, Epoch installed);
  // A placement goes on from a step that some member has reached, and never from one before the committed
  // step.
  void resumes(Epoch epoch, StepNumber step);

  // An incarnation says what is untrue. What it does from now on counts for nothing.
  void discount(Incarnation one) { discounted_.insert(one); }
  // A life that has applied so many steps is to go back. One that has said something else harms itself.
  void goes_back(Incarnation one, StepNumber applied, StepNumber to);

  void broke(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }
  [[nodiscard]] const std::optional<std::string>& violation() const { return violation_; }
  // A hash of everything seen.
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] StepNumber committed_step() const { return committed_; }
  // The most steps that a member has applied while it was not fenced. A run that went back counts from there.
  [[nodiscard]] StepNumber applied_steps() const { return reached_; }

 private:
  void saw(std::map<Epoch, std::string>& known, const char* what, Epoch epoch, const std::string& bytes);
  void mix(std::uint64_t value);
  [[nodiscard]] bool counts(Incarnation one) const { return !discounted_.contains(one) && !fenced_(one); }

  Fenced fenced_;
  std::set<Incarnation> discounted_;
  std::optional<std::string> violation_;
  std::uint64_t hash_ = 0x9e3779b97f4a7c15;
  std::map<Epoch, std::string> views_;
  std::map<Epoch, std::string> installs_;
  std::map<std::pair<std::uint64_t, StepNumber>, Incarnation> applied_;
  std::map<std::pair<std::uint64_t, SampleId>, Incarnation> counted_;
  std::map<cluster::LeaseKeys, Incarnation> believers_;
  struct Held {
    Epoch installed;
    std::map<std::uint64_t, StepNumber> things;
  };
  std::map<Incarnation, Held> held_;
  StepNumber committed_;
  StepNumber applied_steps_;  // by any member, at any time
  StepNumber reached_;        // by those that are not fenced, since the run went on last
  Epoch stored_;
};

}  // namespace gossamer::simulation
