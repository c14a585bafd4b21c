// SPDX-License-Identifier: Apache-2.0
//
// A run as place() takes it: things with their copies, members with their paces, the placement so far. Thread
// rule: plain functions.
#pragma once

#include <gossamer/membership.pb.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/leadership.h"
#include "cluster/control/workload.h"
#include "cluster/placement/placement.h"

namespace gossamer::cluster {

// The things of the workload, with the copies that the reports name.
[[nodiscard]] std::vector<placement::Thing> things_with_copies(
    const Workload& workload, const std::map<NodeId, membership::Frozen>& reports);

// What is known when members rest. All of it outlives the value.
struct AtRest {
  Workload& workload;
  const LedRun& run;
  const std::map<NodeId, membership::Frozen>& reports;
  std::optional<StepNumber> committed;
};
[[nodiscard]] HoldingMap holdings_of(const placement::Placement& placed);
// The engine's decision for members that are placed so. It fails if it is too large to be kept.
[[nodiscard]] Decision decide(const AtRest& rest, const placement::Placement& placed);
// A member may report anything, and the decision rests on all reports. Where it would be too large to be
// kept, this names a member that is not believed. Its report is the largest, and more than twice as large as
// those of most.
[[nodiscard]] std::optional<NodeId> says_too_much(const AtRest& rest, const placement::Placement& placed);
// Whether all that had a part, or a copy of it, are gone.
[[nodiscard]] bool loses_a_part(const AtRest& rest, const placement::Placement& placed);
// Whether a member of this run can say so at rest. It says each copy once, and has heard of no other epochs
// than those that were installed.
[[nodiscard]] bool can_be_said(const membership::Frozen& said, const LedRun& run, const Workload& workload);
// What the store is to know of it.
[[nodiscard]] membership::Installed installed_as(const AtRest& rest, const Decision& decision,
                                                 const placement::Placement& placed);
// What members are told of the last placement.
[[nodiscard]] membership::Install install_message(const LedRun& run);
// Where all things are to be, on these members. Those that depart get nothing, if the others have room.
[[nodiscard]] Result<placement::Decision> placed_at_rest(const AtRest& rest,
                                                         std::vector<placement::Member> members,
                                                         const placement::Options& options);
// Whether the members that rest could go on without these: they have all that the run has learnt, and room.
// What a member has that has not come to rest is not known, so it counts for nothing.
[[nodiscard]] bool go_on_without(const std::set<NodeId>& nodes, const AtRest& rest,
                                 const placement::Options& options, Instant now);
inline constexpr std::string_view kContradicts = "its report contradicts those of the others";
// Members that are to be fenced by what was reported. They contradict the others, or they depart. Then the
// others that rest have all that the run has learnt, or the departure is over and others rest.
[[nodiscard]] Fencing due_at_rest(const AtRest& rest, Instant now);
// Which members depart, for people; "": none.
[[nodiscard]] std::string departing(const LedRun& run);
// Whether the members that rest have all that the run has learnt. With little memory they may have no room
// for it: then they keep their copies until another member comes.
[[nodiscard]] bool have_all(const AtRest& rest, Instant now);
// Members of the view that have not reported.
[[nodiscard]] std::set<NodeId> without_report(const View& view,
                                              const std::map<NodeId, membership::Frozen>& reports);

// Whether each thing has its holder of before among the members that rest, in the same life.
[[nodiscard]] bool holders_rest(const LedRun& run, const std::map<NodeId, membership::Frozen>& reports);
// Nobody serves any more, and those that drain have all that the run has learnt.
[[nodiscard]] bool all_drain(const LedRun& run);
// Whether the connection of each of them closed while it was still heard, so that its process has ended.
[[nodiscard]] bool hung_up(const LedRun& run, const std::set<NodeId>& nodes);
// Whether a member that held something by the last placement is no member any more.
[[nodiscard]] bool a_holder_has_left(const LedRun& run);
// Whether those that are members no more, and in the view still, had drained, and nothing was left to them.
// So no step needs them.
[[nodiscard]] bool only_the_drained_left(const LedRun& run);
// Whether any member is in the state.
[[nodiscard]] bool any_is(const LedRun& run, membership::State state);
// Whether a member that is heard waits to serve, until the change that is under way has ended.
[[nodiscard]] bool any_waits_to_serve(const LedRun& run, const std::function<bool(NodeId)>& hears);
// The members of the view, for a placement. If all drain, those that hold something keep it until another
// member serves.
[[nodiscard]] std::vector<placement::Member> members_to_place(const LedRun& run, Instant now);
// What a member's speed may be of the median. Machines that differ more are not worth one fleet: with 64
// times the median a member has nearly all of the work.
inline constexpr double kMostOfMedian = 64;
// The members of the view. A speed counts up to kMostOfMedian. A member of unknown pace gets the others' mean
// speed for each core, and their least own work.
[[nodiscard]] std::vector<placement::Member> placeable(const LedRun& run, Instant now);
[[nodiscard]] placement::Placement current_placement(const LedRun& run);

// What the members could hold instead, by what is measured now.
[[nodiscard]] Result<placement::Decision> placed_anew(const Workload& workload, const LedRun& run,
                                                      placement::Options options, Instant now);

// The time of a step as the members have measured it, waiting included: the median, of two in the middle the
// lower one. 0 if none is measured.
[[nodiscard]] double step_seconds(const LedRun& run, Instant now);

// So long a step takes at least by the word of more than half of the view; 0: these have not said.
[[nodiscard]] double agreed_step_seconds(const LedRun& run);

// Notes which members hold something from now on. The pace of a member on trial is forgotten.
void see_idle_members(LedRun& run, Instant now);

// Lists the members that are to hold more or fewer things than now, with their measurements.
[[nodiscard]] std::string changes_of(const HoldingMap& holdings, const placement::Placement& placed);

}  // namespace gossamer::cluster
