// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, mostly half right, as what members of a training run tell their lead. What was read is the same
// when it is written again. Steps come out in order and once, below the limit, and so do recoveries.
#include <gossamer/reports.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/check.h"
#include "choices.h"
#include "commands/run/member_report.h"
#include "commands/run/report_tallies.h"

namespace {

using namespace gossamer;
using fuzz::Choices;

std::string report(Choices& choices) {
  wire::MemberReport body;
  if (choices.below(8) == 0) return choices.text();
  if (choices.below(4) == 0) {
    wire::MemberReport::Recovery& recovery = *body.mutable_recovery();
    recovery.set_epoch(choices.number());
    recovery.set_step(choices.number());
    recovery.set_cause(choices.text(8));
    recovery.set_total(static_cast<std::int64_t>(choices.number()));
    recovery.set_detect(static_cast<std::int64_t>(choices.number()));
    recovery.set_replay(static_cast<std::int64_t>(choices.number()));
    recovery.set_steps_replayed(choices.number());
    return body.SerializeAsString();
  }
  wire::MemberReport::Step& step = *body.mutable_step();
  step.set_epoch(choices.number());
  step.set_step(choices.number());
  step.set_rank(choices.number());
  step.set_members(choices.number());
  step.set_loss(choices.real());
  step.set_step_bytes(choices.number());
  step.set_background_bytes(choices.number());
  return body.SerializeAsString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  commands::StepTally steps;
  commands::RecoveryTally recoveries;
  std::optional<StepNumber> last;
  while (choices.left()) {
    const std::string bytes = report(choices);
    const auto read = commands::read_report(bytes);
    if (!read.ok()) {
      CHECK(read.error().kind == ErrorKind::kBadData);
      continue;
    }
    if (!*read) continue;
    const std::string again = commands::report_bytes(**read);
    const auto twice = commands::read_report(again);
    CHECK(twice.ok() && *twice && commands::report_bytes(**twice) == again);
    if (const auto* const step = std::get_if<engine::MemberStep>(&**read))
      steps.add(NodeId(2 + choices.below(3)), *step);
    if (const auto* const recovery = std::get_if<engine::FleetRecovery>(&**read)) recoveries.add(*recovery);
    if (choices.flip()) continue;
    const StepNumber limit(choices.number());
    for (const commands::StepLoss& one : steps.take(limit)) {
      CHECK(one.step < limit && (!last || *last < one.step), one.step.value);
      last = one.step;
    }
    for (const engine::FleetRecovery& one : recoveries.take(limit)) CHECK(one.step < limit, one.step.value);
    CHECK(!last || *last < steps.told_end());
    static_cast<void>(steps.bytes_of_step());
  }
  return 0;
}
