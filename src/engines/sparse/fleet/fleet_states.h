// SPDX-License-Identifier: Apache-2.0
//
// The states of a member of a sparse run (fleet_engine.h), and all transitions between them as one table. The
// table is printed into docs/protocols/sparse-step.md. An event without a row in a state changes nothing.
//
// Thread rule: constants.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gossamer::sparse_engine {

enum class FleetState : std::uint8_t {
  kPreparing,     // it makes its job
  kResting,       // it gives nothing to others: before its first layout, and while the view changes
  kRecovering,    // it gets its part of a layout
  kStepping,      // it takes steps; after the last one it answers questions
  kSnapshotting,  // it takes no step, because a snapshot is due
  kHalting,       // it takes no further step, and waits until what it has saved lasts
  kLeaving,       // it leaves, and gives nothing more
};
inline constexpr int kFleetStates = 7;

enum class FleetEvent : std::uint8_t {
  kPrepared,
  kFrozen,
  kInstalled,
  kStageComputed,
  kStageExchanged,
  kRecovered,
  // What is due, when no step is in flight:
  kFree,
  kCheckpointDue,
  kHaltDue,
  kSnapshotDue,
  kTrained,
  kSnapshotCut,
  kSnapshotStored,
  kLost,
  kLostAtEnd,
  kSaveLasts,
  kAllHalted,
  kOthersSilent,
  kEmptied,
  kStopped,
  kFailed,
};

enum class FleetAction : std::uint8_t {
  kNone,
  kTellReady,
  kRest,
  kBeginRecovery,
  kTakeStage,
  kNextStage,
  kTellApplied,
  kComputeRound,
  kSave,
  kHalt,
  kSnapshot,
  kGiveSnapshot,
  kGoOn,
  kDeliver,
  kLeaveOnceSaved,
  kLeave,
};

// Any of several states.
class FleetStates {
 public:
  // A row lists its states without naming this type.
  constexpr FleetStates(std::same_as<FleetState> auto... states)  // NOLINT(google-explicit-constructor)
      : bits_(static_cast<std::uint8_t>(((1U << static_cast<unsigned>(states)) | ...))) {}
  [[nodiscard]] constexpr bool contains(FleetState state) const {
    return (bits_ >> static_cast<unsigned>(state) & 1U) != 0;
  }

 private:
  std::uint8_t bits_;
};

struct FleetTransition {
  FleetStates from;
  FleetEvent event;
  std::optional<FleetState> to;  // nothing: the state stays
  FleetAction action;
  std::string_view why;
};

[[nodiscard]] std::span<const FleetTransition> fleet_transitions();
// The only row for that event in that state; null: it means nothing there.
[[nodiscard]] const FleetTransition* fleet_transition(FleetState state, FleetEvent event);

[[nodiscard]] std::string_view name(FleetState state);
// The table, as the page shows it.
[[nodiscard]] std::string fleet_transitions_text();

}  // namespace gossamer::sparse_engine
