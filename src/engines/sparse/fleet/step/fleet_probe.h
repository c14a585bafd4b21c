// SPDX-License-Identifier: Apache-2.0
//
// FleetProbe: the rare branches of the sparse engine over a fleet (base/probe.h). Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/probe.h"

namespace gossamer::sparse_engine {

enum class FleetProbe : std::uint8_t {
  kRecovered,
  kReplayedStep,
  kCaughtUp,
  kBehindForGood,
  kRowsAnew,
  kUnitsAnew,
  kColumnsAnew,
  kFromInitial,
  kOwnCopy,
  kOthersCopy,
  kLogSent,
  kLoggedAnew,
  kNotLoggedAnew,
  kMoved,
  kCutShort,
  kSnapshotBeforeMoves,
  kSnapshotUnfinished,
  kSnapshotStored,
  kSnapshotCounts,
  kSameStepSnapshot,
  kWaitedForSnapshot,
  kNoColumns,
  kRowsStay,
  kRowsGiven,
  kLeftEmpty,
  kReplayedFound,
  kFoundSent,
  kEvaluationCut,
  kReplayedRounded,
  kAddedRounded,
  kLogRounded,
  kGivenInVain,
  kCount,
};

inline constexpr std::array<ProbeName<FleetProbe>, static_cast<std::size_t>(FleetProbe::kCount)> kFleetProbes{
    {
        {FleetProbe::kRecovered, "sparse.recovered", "a member went on with a new layout"},
        {FleetProbe::kReplayedStep, "sparse.replayed-step", "a step of a lost part was computed anew"},
        {FleetProbe::kCaughtUp, "sparse.caught-up",
         "a member that was behind applied the step that it lacked"},
        {FleetProbe::kBehindForGood, "sparse.behind-and-emptied",
         "a member that was behind applied the step, and then gave all away"},
        {FleetProbe::kRowsAnew, "sparse.rows-anew", "lost output rows were computed anew"},
        {FleetProbe::kUnitsAnew, "sparse.units-anew", "lost units were computed anew"},
        {FleetProbe::kColumnsAnew, "sparse.columns-anew", "lost columns were computed anew"},
        {FleetProbe::kFromInitial, "sparse.from-initial", "what was lost began with its initial values"},
        {FleetProbe::kOwnCopy, "sparse.own-copy", "what was lost began with a copy of its new holder's own"},
        {FleetProbe::kOthersCopy, "sparse.others-copy",
         "what was lost began with a copy of another member's"},
        {FleetProbe::kLogSent, "sparse.log-sent", "a member without a log got one"},
        {FleetProbe::kLoggedAnew, "sparse.logged-anew", "what a lost part had added to dh got into a log"},
        {FleetProbe::kNotLoggedAnew, "sparse.not-logged-anew",
         "what a lost part had added to dh is in no log, for a snapshot was made before the moves"},
        {FleetProbe::kMoved, "sparse.moved", "a piece changed hands"},
        {FleetProbe::kCutShort, "sparse.cut-short", "a recovery was given up, for the view changed again"},
        {FleetProbe::kSnapshotBeforeMoves, "sparse.snapshot-before-moves",
         "a snapshot was made in a recovery"},
        {FleetProbe::kSnapshotUnfinished, "sparse.snapshot-unfinished",
         "a member came to rest with a snapshot under way"},
        {FleetProbe::kSnapshotStored, "sparse.snapshot-stored",
         "a member came to rest with a snapshot that it had stored, and did not know that all had"},
        {FleetProbe::kSnapshotCounts, "sparse.snapshot-counts",
         "a snapshot counts of which a member did not know that all had stored it"},
        {FleetProbe::kSameStepSnapshot, "sparse.same-step-snapshot",
         "a second snapshot of a step was made, for new keepers"},
        {FleetProbe::kWaitedForSnapshot, "sparse.waited-for-snapshot",
         "a snapshot waited for the one before"},
        {FleetProbe::kNoColumns, "sparse.no-columns", "a member took up a part without columns"},
        {FleetProbe::kRowsStay, "sparse.rows-stay", "a member went on with the table of its output rows"},
        {FleetProbe::kRowsGiven, "sparse.rows-given", "a member that gave output rows away kept the others"},
        {FleetProbe::kLeftEmpty, "sparse.left-empty", "a member that had given all away left"},
        {FleetProbe::kReplayedFound, "sparse.replayed-found",
         "a step of lost output rows was computed anew with what hash tables had found"},
        {FleetProbe::kFoundSent, "sparse.found-sent",
         "a member without a log got what hash tables had found with it"},
        {FleetProbe::kEvaluationCut, "sparse.evaluation-cut",
         "a member came to rest after the lead had asked it about the trained network"},
        {FleetProbe::kReplayedRounded, "sparse.replayed-rounded",
         "a step was computed anew from hidden vectors that had travelled rounded"},
        {FleetProbe::kAddedRounded, "sparse.added-rounded",
         "what was lost was computed anew from shares of dh that had travelled rounded"},
        {FleetProbe::kLogRounded, "sparse.log-rounded",
         "a member without a log got one of what had travelled rounded"},
        {FleetProbe::kGivenInVain, "sparse.given-in-vain",
         "a member gave what none can have, and was blamed by one that did not take it"},
    }};

}  // namespace gossamer::sparse_engine
