// SPDX-License-Identifier: Apache-2.0
//
// place(): which member holds which thing. Things are output shards, column shards or stages; members are the
// nodes of a run. A pure function, in this order of importance:
//   1. No member holds more bytes than its limit. Members that drain or are gone hold nothing.
//   2. A thing whose holder may keep it stays. A thing without a holder goes where its snapshot lies, as far
//      as 3 allows it.
//   3. The time of a step is small:
//        max over members that hold something of ((own work + work of its things) / speed).
//      A thing without a holder goes where it costs least. A running placement is changed if that pays
//      (Options). So a member holds nothing if its own work is more than it takes off the others.
// docs/placement.md: the method, its bounds (with the papers), what it costs.
//
// The result depends on the values only, not on the order of things, members, copies or holdings; ids break
// ties. place() of its own result changes nothing. Thread rule: pure functions of plain values, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace gossamer::placement {

using ThingId = StrongId<struct ThingIdTag>;
using MemberId = StrongId<struct MemberIdTag>;

struct Thing {
  ThingId id;
  std::uint64_t bytes = 0;  // of its holder's memory; also what a move of it carries
  double work = 0;          // per step, >= 0, in any unit
  // The members whose disks have its snapshot, which takes no memory. Unknown ids are ignored.
  std::vector<MemberId> copies = {};
};

enum class Service { kServing, kDraining };

struct Member {
  MemberId id;
  std::uint64_t limit_bytes = 0;
  double speed = 1;  // measured, units of work a second, > 0; not read for a member that drains
  Service service = Service::kServing;
  // The work that it does in a step beside the work of its things, as soon as it holds any. Measured, in the
  // same unit, >= 0; not read for a member that drains.
  double own_work = 0;
};

struct Holding {
  ThingId thing;
  MemberId member;
  bool operator==(const Holding&) const = default;
};

// The speed and own work that a placement was made for. They stay believed while all later measurements of
// all members are within the dead band around them.
struct BelievedSpeed {
  MemberId member;
  double speed = 0;
  double own_work = 0;
  bool operator==(const BelievedSpeed&) const = default;
};

struct Placement {
  std::vector<Holding> holdings;      // by thing
  std::vector<BelievedSpeed> speeds;  // by member, the serving ones
  bool operator==(const Placement&) const = default;
};

struct Options {
  // A step at most this fraction longer than any placement could make it is good enough: nothing moves for
  // less.
  double tolerance = 1.0 / 16;
  // The same, where all things may stay and all members hold some. A change holds everybody up, and equal
  // members are measured as unequal by chance. If things move nevertheless, they move until the step is
  // within `tolerance`.
  double settled_tolerance = 1.0 / 8;
  // The time that a whole step was seen to take with the running placement. It includes waiting, which no
  // placement changes. If lines take most of it, moving gains little. 0: members compute all the time.
  double step_s = 0;
  // Members are believed as fast as before until one measurement differs by more than this fraction. Then all
  // are measured anew, as things move anyway. Measurements that are always within +-e of the truth move
  // nothing when dead_band >= 2e / (1 - e). Normally distributed ones should have a standard deviation below
  // dead_band / 10.
  double dead_band = 0.2;
  // A change must save more time within the horizon than it takes to move; 0 never moves a thing that may
  // stay. A thing that goes where a copy lies takes no time.
  double horizon_s = 600;
  double bandwidth = 12.5e6;  // of one member's link, bytes a second each way
};

enum class Change {
  kNone,         // the running placement stays
  kNeeded,       // only things without a holder, or that must leave theirs, have moved
  kRebalancing,  // more has moved, because it pays
};

struct Decision {
  Placement placement;
  Change change = Change::kNone;
  double step_s = 0;              // the largest member's time, at believed speeds
  double bound_s = 0;             // no placement within the limits is faster
  std::uint64_t moved_bytes = 0;  // of things with another holder than in `current`
  std::uint64_t probes = 0;       // counted work: things and tree nodes looked at
};

// Requires ids that differ among things and among members, and at most one holding of a thing. Requires
// finite work and speeds in the ranges above, options >= 0, bandwidth > 0. Holdings of unknown things or
// members are ignored. The error is kFailed when memory does not suffice. The message says how many bytes one
// more member would need. For up to kExactThings things it means that there is no way (within a budget of
// counted work). For more things it means that best fit found none.
[[nodiscard]] Result<Decision> place(std::span<const Thing> things, std::span<const Member> members,
                                     const Placement& current, const Options& options);

}  // namespace gossamer::placement
