// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gossamer::sparse_engine {
namespace {

using enum FleetState;
using Event = FleetEvent;
using Action = FleetAction;

constexpr FleetStates kAny(kPreparing, kResting, kRecovering, kStepping, kSnapshotting, kHalting, kLeaving);
constexpr FleetStates kBetweenSteps(kStepping, kSnapshotting, kHalting);
constexpr std::nullopt_t kStays = std::nullopt;

constexpr std::array kRows = std::to_array<FleetTransition>({
    {kPreparing, Event::kPrepared, kResting, Action::kTellReady, "the coordinator may give it a part"},
    {{kPreparing, kLeaving}, Event::kFrozen, kStays, Action::kRest, "the view waits for every report"},
    {{kResting, kRecovering, kStepping, kSnapshotting, kHalting},
     Event::kFrozen,
     kResting,
     Action::kRest,
     "nothing may be on its way when pieces get other holders"},
    {{kResting, kLeaving},
     Event::kInstalled,
     kRecovering,
     Action::kBeginRecovery,
     "others may need what it holds; a member that leaves is here until its save lasts"},
    {{kResting, kRecovering, kLeaving},
     Event::kStageComputed,
     kStays,
     Action::kTakeStage,
     "what a recovery has finished lasts, also if it is cut short"},
    {kRecovering, Event::kStageExchanged, kStays, Action::kNextStage,
     "a stage needs what the one before gave"},
    {kRecovering, Event::kSnapshotCut, kStays, Action::kGiveSnapshot, "the pieces that move are in it"},
    {kRecovering, Event::kSnapshotStored, kStays, Action::kNextStage,
     "pieces move once all have their copies"},
    {kRecovering, Event::kRecovered, kStepping, Action::kTellApplied, "it has its part of the layout"},
    {{kResting, kLeaving},
     Event::kRecovered,
     kStays,
     Action::kTellApplied,
     "the part lasts; the next layout begins with it"},
    {kBetweenSteps, Event::kFree, kStepping, Action::kComputeRound, "nothing is due before the next step"},
    {kBetweenSteps, Event::kCheckpointDue, kStepping, Action::kSave, "no step is in flight"},
    {kBetweenSteps, Event::kHaltDue, kHalting, Action::kHalt, "all members halt after the same step"},
    {kBetweenSteps, Event::kSnapshotDue, kSnapshotting, Action::kSnapshot,
     "a snapshot is of a state between two steps, and two at a time would be larger"},
    {kBetweenSteps, Event::kTrained, kStepping, Action::kDeliver, "there is no next step"},
    {kSnapshotting, Event::kSnapshotCut, kStepping, Action::kGiveSnapshot, "steps go on beside a snapshot"},
    {kSnapshotting, Event::kSnapshotStored, kStepping, Action::kGoOn, "the snapshot before has ended"},
    {{kRecovering, kStepping, kSnapshotting, kHalting},
     Event::kLost,
     kResting,
     Action::kNone,
     "the view will change"},
    {{kResting, kRecovering, kStepping, kSnapshotting, kHalting, kLeaving},
     Event::kLostAtEnd,
     kLeaving,
     Action::kLeaveOnceSaved,
     "no member replaces a lost one when the run ends"},
    {kAny, Event::kSaveLasts, kLeaving, Action::kLeave, "nothing but its save kept it"},
    {kHalting, Event::kAllHalted, kLeaving, Action::kLeave, "nobody waits for bytes of it"},
    {kAny, Event::kOthersSilent, kLeaving, Action::kLeave, "dead members do not tell that they have halted"},
    {{kStepping, kSnapshotting, kHalting},
     Event::kEmptied,
     kStays,
     Action::kLeave,
     "it was to give all away; others may need it until they know"},
    {kAny, Event::kStopped, kStays, Action::kLeave, "the run ends, and there is nothing to save"},
    {kAny, Event::kFailed, kLeaving, Action::kLeave, "it cannot go on; the others can"},
});

// Whether no event has two rows in a state.
constexpr bool is_clear() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (kRows[i].event != kRows[j].event) continue;
      for (int state = 0; state < kFleetStates; ++state) {
        const auto one = static_cast<FleetState>(state);
        if (kRows[i].from.contains(one) && kRows[j].from.contains(one)) return false;
      }
    }
  }
  return true;
}
static_assert(is_clear());

std::string_view words(Event event) {
  switch (event) {
    case Event::kPrepared: return "the job is made";
    case Event::kFrozen: return "the view begins to change";
    case Event::kInstalled: return "the decision for its view is there";
    case Event::kStageComputed: return "a stage of the recovery is computed";
    case Event::kStageExchanged: return "the others' gifts of a stage are there";
    case Event::kRecovered: return "all stages are done";
    case Event::kFree: return "a round can be computed, or waits";
    case Event::kCheckpointDue: return "a checkpoint is due";
    case Event::kHaltDue: return "it is told to end, and members have agreed to halt";
    case Event::kSnapshotDue: return "a snapshot is due";
    case Event::kTrained: return "all steps are applied";
    case Event::kSnapshotCut: return "what the keepers lack is gathered";
    case Event::kSnapshotStored: return "all members have stored a snapshot";
    case Event::kLost: return "an exchange fails, as a member is lost";
    case Event::kLostAtEnd: return "an exchange fails or takes too long, when the run is to end";
    case Event::kSaveLasts: return "it was left alone, and its save lasts now";
    case Event::kAllHalted: return "all members have halted";
    case Event::kOthersSilent: return "members have not halted for 10 s and four steps";
    case Event::kEmptied: return "it drains, and holds nothing";
    case Event::kStopped: return "it is asked to leave, and cannot save";
    case Event::kFailed: return "it fails";
  }
  return "";
}

std::string_view words(Action action) {
  switch (action) {
    case Action::kNone: return "none";
    case Action::kTellReady: return "say `Ready`";
    case Action::kRest: return "give nothing more; say `Frozen` once no Work is under way";
    case Action::kBeginRecovery: return "open exchanges with its members; compute the first stage";
    case Action::kTakeStage: return "take its result over, and give it to the others";
    case Action::kNextStage: return "compute the next stage";
    case Action::kTellApplied: return "tell the steps that are applied; look what is due";
    case Action::kComputeRound: return "compute it, if the gifts that it needs are there";
    case Action::kSave: return "save what it holds";
    case Action::kHalt: return "tell the others, once the save lasts";
    case Action::kSnapshot: return "gather what keepers lack, unless a snapshot is on its way";
    case Action::kGiveSnapshot: return "give it to the keepers";
    case Action::kGoOn: return "look what is due";
    case Action::kDeliver: return "deliver the part, once a layout; then answer questions";
    case Action::kLeaveOnceSaved: return "save what it holds, and leave when that lasts";
    case Action::kLeave: return "leave the run";
  }
  return "";
}

std::string words(const FleetStates& states) {
  std::string text;
  bool all = true;
  for (int state = 0; state < kFleetStates; ++state) {
    const auto one = static_cast<FleetState>(state);
    all = all && states.contains(one);
    if (states.contains(one)) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name(one));
  }
  return all ? "any" : text;
}

}  // namespace

std::span<const FleetTransition> fleet_transitions() { return kRows; }

const FleetTransition* fleet_transition(FleetState state, FleetEvent event) {
  const auto found = std::ranges::find_if(
      kRows, [&](const FleetTransition& one) { return one.event == event && one.from.contains(state); });
  return found == kRows.end() ? nullptr : &*found;
}

std::string_view name(FleetState state) {
  switch (state) {
    case kPreparing: return "preparing";
    case kResting: return "resting";
    case kRecovering: return "recovering";
    case kStepping: return "stepping";
    case kSnapshotting: return "snapshotting";
    case kHalting: return "halting";
    case kLeaving: return "leaving";
  }
  return "";
}

std::string fleet_transitions_text() {
  std::string text = "| from | event | to | action | why |\n|---|---|---|---|---|\n";
  for (const FleetTransition& one : kRows) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", words(one.from), words(one.event),
                        one.to ? fmt::format("`{}`", name(*one.to)) : "stays", words(one.action), one.why);
  }
  return text;
}

}  // namespace gossamer::sparse_engine
