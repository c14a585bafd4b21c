// SPDX-License-Identifier: Apache-2.0
//
// MemberReport: what a member of a training run tells its lead, for progress, curve, events and summary. As
// bytes it is a wire.MemberReport (docs/protocols/reports.md).
//
// Thread rule: plain values and functions.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/counters.h"
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

// A file of the checkpoint that the run began with. A member found it damaged, and read others in its place.
struct DamagedFile {
  std::string file;   // for people
  std::string error;  // for people
};

using MemberReport = std::variant<engine::MemberStep, engine::FleetRecovery, FailedCheckpoint, DamagedFile>;

[[nodiscard]] std::string report_bytes(const MemberReport& report);
// Nothing for no bytes, and for a kind of report that this version does not know. kBadData for bytes that no
// member can have told.
[[nodiscard]] Result<std::optional<MemberReport>> read_report(std::string_view bytes);

// An EventSink that reports each damaged file once (event `checkpoint_damaged`).
class DamageReports {
 public:
  explicit DamageReports(std::function<void(const MemberReport&)> tell) : tell_(std::move(tell)) {}
  void operator()(std::string_view event, EventFields fields);

 private:
  std::function<void(const MemberReport&)> tell_;
  std::set<std::string> told_;
};

}  // namespace gossamer::commands
