// SPDX-License-Identifier: Apache-2.0
//
// place(): which member holds which thing. Things are output shards, column shards or stages; members are the
// nodes of a run. A pure function, in this order of importance:
//   1. no member holds more bytes than its limit; members that drain or are gone hold nothing;
//   2. what has a holder that may keep it stays, and what has none goes where its snapshot lies, as far as 3
//      allows it;
//   3. the time of a step, max over members that hold something of ((its own work + work of its things) / its
//      speed), is small: a thing without a holder goes where it costs least, and a running placement is
//      changed if that pays (Options). So who has more to do on its own account than it takes off the others
//      holds nothing.
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
  // Where its snapshot lies, on disk: that takes no memory. Ids of nobody are ignored.
  std::vector<MemberId> copies = {};
};

enum class Service { kServing, kDraining };

struct Member {
  MemberId id;
  std::uint64_t limit_bytes = 0;
  double speed = 1;  // measured, units of work a second, > 0; of a member that drains it is not read
  Service service = Service::kServing;
  // What it does in a step beside the work of its things as soon as it holds one, whichever: measured, in the
  // same unit, >= 0; of a member that drains it is not read.
  double own_work = 0;
};

struct Holding {
  ThingId thing;
  MemberId member;
  bool operator==(const Holding&) const = default;
};

// The speed and own work a placement was made for. As long as all later measurements of those members are
// within the dead band of them, none counts.
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
  // A step at most this much longer than any placement could make it is good enough: nothing moves for less.
  double tolerance = 1.0 / 16;
  // Likewise, where all things may stay and all members hold some: a change holds everybody up, and equal
  // members are measured as unequal by chance. What moves then moves for `tolerance`.
  double settled_tolerance = 1.0 / 8;
  // What a whole step was seen to take with the running placement, with what members wait for and no
  // placement changes: where lines take most of it, little is gained by moving. 0: members compute all the
  // time.
  double step_s = 0;
  // Members are believed as fast as before until a measurement of one differs by more than this share; then
  // all are measured anew, as things move anyway. Measurements that are always within +-e of the truth move
  // nothing when dead_band >= 2e / (1 - e); normal ones had better have a standard deviation below
  // dead_band / 10.
  double dead_band = 0.2;
  // A change must save more time within the horizon than it takes to move: 0 never moves what may stay. What
  // goes where a copy of it lies takes nothing.
  double horizon_s = 600;
  double bandwidth = 12.5e6;  // of one member's link, bytes a second each way
};

enum class Change {
  kNone,         // the running placement stays
  kNeeded,       // only what had no holder, or must leave the one it had, has moved
  kRebalancing,  // more has moved, because it pays
};

struct Decision {
  Placement placement;
  Change change = Change::kNone;
  double step_s = 0;              // the largest member's time, at believed speeds
  double bound_s = 0;             // no placement within the limits is faster
  std::uint64_t moved_bytes = 0;  // of things whose holder is another one than in `current`
  std::uint64_t probes = 0;       // counted work: things and tree nodes looked at
};

// Requires ids that differ among things and among members, at most one holding of a thing, finite work and
// speeds in the ranges above, options >= 0, bandwidth > 0. Holdings of unknown things or members are ignored.
// kFailed when memory does not suffice; the message says how many bytes one more member would need. Up to
// kExactThings things that is so only if there is no way (within a budget of counted work); with more, if
// none was found by best fit.
[[nodiscard]] Result<Decision> place(std::span<const Thing> things, std::span<const Member> members,
                                     const Placement& current, const Options& options);

}  // namespace gossamer::placement
