// SPDX-License-Identifier: Apache-2.0
//
// MemberReport: what a member of a training run tells its lead, for progress, curve, events and summary. As
// bytes it is a wire.MemberReport (docs/protocols/reports.md).
//
// Thread rule: plain values and functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.h"
#include "base/result.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/member_step.h"

namespace gossamer::commands {

// A checkpoint that a member could not write.
struct FailedCheckpoint {
  StepNumber step;
  std::string error;  // for people
};

using MemberReport = std::variant<engine::MemberStep, engine::FleetRecovery, FailedCheckpoint>;

[[nodiscard]] std::string report_bytes(const MemberReport& report);
// Nothing for bytes that are none, or that no member can have told.
[[nodiscard]] std::optional<MemberReport> read_report(std::string_view bytes);

}  // namespace gossamer::commands
