// SPDX-License-Identifier: Apache-2.0
#include "commands/run/member_report.h"

#include <gossamer/reports.pb.h>

#include "base/printable.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kMostText = 2000;  // bytes of a text that people will read

void write(const engine::MemberStep& step, wire::MemberReport& report) {
  wire::MemberReport::Step& told = *report.mutable_step();
  told.set_epoch(step.epoch.value);
  told.set_step(step.step.value);
  told.set_rank(step.rank);
  told.set_members(step.members);
  told.set_loss(step.loss);
  told.set_step_bytes(step.sent.steps);
  told.set_background_bytes(step.sent.background);
}

void write(const engine::FleetRecovery& recovery, wire::MemberReport& report) {
  wire::MemberReport::Recovery& told = *report.mutable_recovery();
  told.set_epoch(recovery.epoch.value);
  told.set_step(recovery.step.value);
  told.set_cause(recovery.cause.substr(0, kMostText));
  told.set_total(recovery.total.ns);
  told.set_detect(recovery.detect.ns);
  told.set_agree(recovery.agree.ns);
  told.set_load(recovery.load.ns);
  told.set_replay(recovery.replay.ns);
  told.set_steps_replayed(recovery.steps_replayed);
}

void write(const FailedCheckpoint& failed, wire::MemberReport& report) {
  report.mutable_failed()->set_step(failed.step.value);
  report.mutable_failed()->set_error(failed.error.substr(0, kMostText));
}

void write(const DamagedFile& damaged, wire::MemberReport& report) {
  report.mutable_damaged()->set_file(damaged.file.substr(0, kMostText));
  report.mutable_damaged()->set_error(damaged.error.substr(0, kMostText));
}

std::string text_of(const std::string& told) { return visible(told.substr(0, kMostText)); }

engine::MemberStep read(const wire::MemberReport::Step& told) {
  return {.epoch = Epoch(told.epoch()),
          .step = StepNumber(told.step()),
          .rank = told.rank(),
          .members = told.members(),
          .loss = told.loss(),
          .sent = {.steps = told.step_bytes(), .background = told.background_bytes()}};
}

engine::FleetRecovery read(const wire::MemberReport::Recovery& told) {
  return {.epoch = Epoch(told.epoch()),
          .step = StepNumber(told.step()),
          .cause = text_of(told.cause()),
          .total = {told.total()},
          .detect = {told.detect()},
          .agree = {told.agree()},
          .load = {told.load()},
          .replay = {told.replay()},
          .steps_replayed = told.steps_replayed()};
}

}  // namespace

std::string report_bytes(const MemberReport& report) {
  wire::MemberReport told;
  std::visit([&](const auto& one) { write(one, told); }, report);
  return told.SerializeAsString();
}

void DamageReports::operator()(std::string_view event, EventFields fields) {
  if (event != "checkpoint_damaged") return;
  DamagedFile damaged;
  for (const EventField& field : fields) {
    const auto* const text = std::get_if<std::string>(&field.value);
    if (text == nullptr) continue;
    if (field.key == "file") damaged.file = *text;
    if (field.key == "error") damaged.error = *text;
  }
  if (told_.insert(damaged.file).second) tell_(damaged);
}

Result<std::optional<MemberReport>> read_report(std::string_view bytes) {
  using Read = std::optional<MemberReport>;
  wire::MemberReport told;
  if (!told.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{.kind = ErrorKind::kBadData, .what = "it tells what is no report"};
  switch (told.report_case()) {
    case wire::MemberReport::kStep:
      if (told.step().rank() >= told.step().members())
        return Error{.kind = ErrorKind::kBadData, .what = "it tells of a rank that cannot be"};
      return Read(read(told.step()));
    case wire::MemberReport::kRecovery:
      if (told.recovery().total() < 0)
        return Error{.kind = ErrorKind::kBadData, .what = "it tells of less than no time"};
      return Read(read(told.recovery()));
    case wire::MemberReport::kFailed:
      return Read(FailedCheckpoint{.step = StepNumber(told.failed().step()),
                                   .error = text_of(told.failed().error())});
    case wire::MemberReport::kDamaged:
      return Read(
          DamagedFile{.file = text_of(told.damaged().file()), .error = text_of(told.damaged().error())});
    case wire::MemberReport::REPORT_NOT_SET: return Read();
  }
  return Read();
}

}  // namespace gossamer::commands
