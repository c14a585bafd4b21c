// SPDX-License-Identifier: Apache-2.0
//
// SparseWatch: conditions that must hold for the sparse engine whatever happens
// (docs/protocols/sparse-step.md), seen from outside:
//
// - No life goes back, or applies several steps at once. A step of a shard is applied by one holder that is
//   not fenced, and none is committed that a holder has not applied (invariants.h).
// - Members that work together are at most one step apart, and a member behind lacks nothing but gradients.
// - A member that has forgotten what was before a snapshot knows rightly that all have stored it.
//
// It also tells when the run may lose a piece for good. Each piece has min(copies, holders - 1) copies beside
// the original, each with another member. While faults have taken fewer lives since all copies were in their
// places, every piece is left somewhere. The run must then go on. A life counts only if a fault took that
// very member:
// - It was killed, made to leave, or stopped or cut off for longer than its own patience.
// - Its line to a coordinator was cut, and the others, which had all that it had, went on without it. A slow
//   line that a hostile member has filled is cut in the same way.
// - It lost a dispute with liars alone: nobody can know which of two is one (SECURITY.md, "Quarrels").
// A member that was away for less has all that it had, and a member that was fenced for another reason was
// there. Losing its piece is no rightful loss.
//
// Thread rule: the simulation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/ids.h"
#include "engines/sparse/fleet/fleet_engine.h"
#include "simulation/fleet.h"

namespace gossamer::simulation {

class SparseWatch {
 public:
  struct Options {
    std::size_t copies = 1;
    TimedTrace trace = {};
  };
  // The fleet outlives it.
  SparseWatch(Fleet& fleet, Options options) : fleet_(fleet), options_(std::move(options)) {}

  // Called after each event of a member's engine.
  void saw(SimMember& process, const sparse_engine::FleetEngine& engine);
  // Called now and then.
  void look();
  [[nodiscard]] bool may_have_lost() const;

 private:
  // What a member's life has shown so far.
  struct Seen {
    std::optional<Incarnation> life;
    Epoch told;
    Epoch recovered;
    std::optional<StepNumber> step;
    bool lacks_no_more = false;
    std::set<std::size_t> shards;
    StepNumber known_by_all;
    StepNumber stored;
  };
  // Since when deaths count, and how many deaths may lose a piece.
  struct Safe {
    std::uint64_t fenced = 0;
    std::size_t deaths = 0;
  };

  void saw_step(const std::string& machine, Seen& seen, StepNumber step);
  void saw_layout(const std::string& machine, Seen& seen, const sparse_engine::FleetTakenUp& taken_up);
  void compare(const std::string& machine, const Seen& seen);
  void compare_steps(const std::string& ahead, const Seen& theirs, const std::string& behind,
                     const Seen& its);
  void trace(const std::string& machine, const std::string& what) const;

  Fleet& fleet_;
  const Options options_;
  std::map<std::string, Seen> seen_;  // by machine, of the present members
  std::optional<Safe> safe_;
};

}  // namespace gossamer::simulation
