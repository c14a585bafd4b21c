// SPDX-License-Identifier: Apache-2.0
//
// FleetDefect: one protection switched off, so that the simulation can show that it would be missed
// (`gossamer simulate sparse-chaos break=NAME`). Never set outside a simulation. Thread rule: plain value.
#pragma once

#include <array>
#include <string_view>

namespace gossamer::sparse_engine {

enum class FleetDefect {
  kNone,
  kSkipReplayStep,         // lost pieces are computed anew without the last step
  kApplyTwice,             // a member that was a step behind applies it twice
  kNoCatchUp,              // a member that was a step behind goes on without it
  kLostLog,                // what a part added to dh is not logged
  kForgetRecomputed,       // what a recomputed part added is not logged
  kNoBarrier,              // a member without columns waits for no gradients
  kEarlyForget,            // a snapshot counts for all as soon as one member has stored it
  kStaleCopy,              // a snapshot leaves out a row that has changed
  kNoSnapshotBeforeMoves,  // pieces move though the log names their earlier holders
  kForgetFound,            // lost pieces are computed anew without what hash tables had found
};

struct FleetDefectName {
  FleetDefect defect;
  std::string_view name;
  std::string_view sentence;
};

inline constexpr std::array<FleetDefectName, 10> kFleetDefects{{
    {FleetDefect::kSkipReplayStep, "skip-replay-step", "what is lost is computed anew without the last step"},
    {FleetDefect::kApplyTwice, "apply-twice", "a member that was a step behind applies it twice"},
    {FleetDefect::kNoCatchUp, "no-catch-up", "a member that was a step behind goes on without it"},
    {FleetDefect::kLostLog, "lost-log", "what a part added to dh is not logged"},
    {FleetDefect::kForgetRecomputed, "forget-recomputed",
     "what a part added that was computed anew is not logged"},
    {FleetDefect::kNoBarrier, "no-barrier", "a member without columns waits for nobody's gradients"},
    {FleetDefect::kEarlyForget, "early-forget",
     "a snapshot counts for all as soon as one member has stored it"},
    {FleetDefect::kStaleCopy, "stale-copy", "a snapshot leaves out a row that has changed"},
    {FleetDefect::kNoSnapshotBeforeMoves, "no-snapshot-before-moves",
     "pieces move though the log tells of those that held them before"},
    {FleetDefect::kForgetFound, "forget-found",
     "what is lost is computed anew without what hash tables had found"},
}};

}  // namespace gossamer::sparse_engine
