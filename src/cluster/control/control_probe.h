// SPDX-License-Identifier: Apache-2.0
//
// ControlProbe: the rare branches of coordinator and member (base/probe.h). Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>

#include "base/probe.h"

namespace gossamer::cluster {

enum class ControlProbe : std::uint8_t {
  // coordinator
  kBeginAgain,
  kChangeBegunAnew,
  kChangeWaits,
  kShortWhileRunning,
  kTakenUpInChange,
  kNotHereInTime,
  kSilent,
  kUnreachable,
  kFormerLife,
  kBeforeHere,
  kWholeView,
  kSeveralDifferences,
  kInstallAgain,
  kLateFrozen,
  kRebalanced,
  kRaised,
  kCommitRepeated,
  kFirstCommitRepeated,
  kGuardRefused,
  kLoadFailed,
  kAskedOnStandby,
  kReleased,
  // member
  kOtherCoordinator,
  kSearched,
  kRequestRepeated,
  kReadyRepeated,
  kFrozenRepeated,
  kDrainRepeated,
  kMessageKept,
  kNewLife,
  kLeaveInTime,
  kCount,
};

inline constexpr std::array<ProbeName<ControlProbe>, static_cast<std::size_t>(ControlProbe::kCount)>
    kControlProbes{{
        {ControlProbe::kBeginAgain, "coordinator.begin-again", "a node began that was alive already"},
        {ControlProbe::kChangeBegunAnew, "coordinator.change-begun-anew",
         "somebody died while members came to rest"},
        {ControlProbe::kChangeWaits, "coordinator.change-waits",
         "somebody wanted to come or go while members came to rest"},
        {ControlProbe::kShortWhileRunning, "coordinator.short", "too few were left to go on"},
        {ControlProbe::kTakenUpInChange, "coordinator.taken-up-in-change",
         "a coordinator found an epoch that was begun and not installed"},
        {ControlProbe::kNotHereInTime, "coordinator.not-here-in-time", "a member did not come in time"},
        {ControlProbe::kSilent, "coordinator.silent", "a member was declared dead for its silence"},
        {ControlProbe::kUnreachable, "coordinator.unreachable",
         "a member was fenced because others could not reach it"},
        {ControlProbe::kFormerLife, "coordinator.former-life",
         "a message came over a link with an incarnation that is none of the run's"},
        {ControlProbe::kBeforeHere, "coordinator.before-here", "a member spoke before it had said Here"},
        {ControlProbe::kWholeView, "coordinator.whole-view",
         "a member was too far behind for differences and got the whole view"},
        {ControlProbe::kSeveralDifferences, "coordinator.several-differences",
         "a member was several epochs behind"},
        {ControlProbe::kInstallAgain, "coordinator.install-again",
         "a member came back without the last Install"},
        {ControlProbe::kLateFrozen, "coordinator.late-frozen", "a member came to rest for an older epoch"},
        {ControlProbe::kRebalanced, "coordinator.rebalanced", "measured speeds were worth another placement"},
        {ControlProbe::kRaised, "coordinator.raised", "members were ahead of what was known to be committed"},
        {ControlProbe::kCommitRepeated, "coordinator.commit-repeated", "a write of the store failed"},
        {ControlProbe::kFirstCommitRepeated, "coordinator.first-commit-repeated",
         "the first write of a lead failed"},
        {ControlProbe::kGuardRefused, "coordinator.guard-refused",
         "the store refused a replaced coordinator"},
        {ControlProbe::kLoadFailed, "coordinator.load-failed",
         "the store could not be read at the start of a lead"},
        {ControlProbe::kAskedOnStandby, "coordinator.asked-on-standby", "a node asked one that stands by"},
        {ControlProbe::kReleased, "coordinator.released",
         "a member that was leaving was let go although nobody could take its part over"},
        {ControlProbe::kOtherCoordinator, "member.other-coordinator",
         "a link to the coordinator led to another life of it"},
        {ControlProbe::kSearched, "member.searched", "a member looked for who leads"},
        {ControlProbe::kRequestRepeated, "member.request-repeated",
         "a request was repeated to a coordinator, old or new"},
        {ControlProbe::kReadyRepeated, "member.ready-repeated", "Ready was said again"},
        {ControlProbe::kFrozenRepeated, "member.frozen-repeated", "Frozen was said again"},
        {ControlProbe::kDrainRepeated, "member.drain-repeated", "Drain was said again"},
        {ControlProbe::kMessageKept, "member.message-kept", "a message waited for a link that was not open"},
        {ControlProbe::kNewLife, "member.new-life", "a fenced process began again as a new incarnation"},
        {ControlProbe::kLeaveInTime, "member.leave-in-time", "nobody answered a member that left"},
    }};

}  // namespace gossamer::cluster
