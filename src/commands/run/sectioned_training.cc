// SPDX-License-Identifier: Apache-2.0
#include "commands/run/sectioned_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "commands/run/led_configuration.h"
#include "commands/run/run_lead.h"
#include "settings/toml.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

// Bytes of a file of sections beside them.
constexpr std::uint64_t kHeaderRoom = std::uint64_t{1} << 20;

Error no_checkpoint(const std::string& directory, StepNumber step) {
  return {.where = directory,
          .what = fmt::format("the checkpoint of step {} is gone", step.value),
          .expected = "the one that the run began with",
          .fix = "leave the run's files alone while it runs"};
}

bool has_section(const std::vector<tensors::CheckpointFile>& files, const std::string& name) {
  return std::ranges::any_of(files, [&](const auto& file) { return file.size_of(name).has_value(); });
}

}  // namespace

SectionedTraining::SectionedTraining(const TrainingPlace& place, std::string engine,
                                     const std::optional<LeadOptions>& lead)
    : host_(place.host),
      paths_(place.paths),
      run_id_(place.run_id),
      engine_(std::move(engine)),
      lead_(lead) {}

Result<void> SectionedTraining::prepare() {
  if (lead_) return load();
  return Error{.kind = ErrorKind::kUsage,
               .where = "--nodes",
               .what = fmt::format("members do the steps of engine '{}'", engine_),
               .got = "no members",
               .expected = "how many processes of this machine do them",
               .fix = "add --nodes N, or lead members from anywhere: gossamer coordinator"};
}

Result<DoneSteps> SectionedTraining::train(const engine::TrainHooks& hooks, double load_seconds) {
  load_seconds_ = load_seconds;
  RunLead lead(host_, engine_, *lead_);
  auto done = lead.train(paths_, *this, hooks);
  cost_ = lead.cost();
  return done;
}

void SectionedTraining::finished() { remove_delivered(host_.disk, paths_); }

LedTraining::Facts SectionedTraining::led_facts() const {
  const Sections own = sections();
  const TrainingFacts facts = this->facts();
  return {.run_id = run_id_,
          .fingerprint = own.fingerprint,
          .steps = own.steps,
          .batch = facts.batch,
          .samples = facts.samples,
          .checkpoints = own.checkpoints,
          .load_seconds = load_seconds_};
}

// The newest whole one. Newer files would become another one.
Result<LedTraining::Start> SectionedTraining::find_start(EventSink) {
  const auto files = tensors::list_fleet_files(host_.disk, paths_.checkpoints());
  if (!files.ok()) return files.error();
  for (auto step = files->rbegin(); step != files->rend(); ++step) {
    if (auto info = checkpoint(step->first))
      return Start{.from = *std::move(info), .trained = step->first.value == sections().steps};
    for (const std::string& name : step->second) {
      auto removed = host_.disk.remove_all(paths_.checkpoints() + "/" + name);
      if (!removed.ok()) return removed.error();
    }
  }
  return Start();
}

Result<DoneSteps> SectionedTraining::take_trained(const engine::TrainHooks&) {
  const StepNumber last(sections().steps);
  tensors::CheckpointInfo info;
  auto files = whole(paths_.checkpoints(), last, &info);
  if (files) parts_ = *std::move(files);
  return DoneSteps{.steps = last.value, .all = !parts_.empty(), .resumed_at = last, .cost_before = info.cost};
}

std::optional<std::vector<tensors::CheckpointFile>> SectionedTraining::whole(
    const std::string& directory, StepNumber step, tensors::CheckpointInfo* info) const {
  const auto nobody = [](std::string_view, EventFields) {};
  const Sections own = sections();
  auto files = tensors::open_fleet_files(host_.disk, directory, own.fingerprint, step, nobody);
  if (!files.ok() || !files->has_value()) return std::nullopt;
  if (info != nullptr) *info = (*files)->info;
  auto& found = (*files)->files;
  const bool all = std::ranges::all_of(own.names, [&](const auto& name) { return has_section(found, name); });
  return all ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<tensors::CheckpointInfo> SectionedTraining::checkpoint(StepNumber step) const {
  tensors::CheckpointInfo info;
  return whole(paths_.checkpoints(), step, &info) ? std::optional(std::move(info)) : std::nullopt;
}

Result<Led> SectionedTraining::lead(const FleetWanted& wanted) {
  const Sections own = sections();
  if (auto made = host_.disk.make_directories(paths_.cache()); !made.ok()) return made.error();
  Led led = workload(wanted.start);
  led.supply = node::Supply{
      .directory = paths_.cache(), .deliver = paths_.parts(), .most_bytes = own.most_bytes + kHeaderRoom};
  if (auto added = supply(*led.supply); !added.ok()) return added.error();
  if (!wanted.one_machine && wanted.start > StepNumber()) {
    const auto files = tensors::list_fleet_files(host_.disk, paths_.checkpoints());
    if (!files.ok()) return files.error();
    const auto of_start = files->find(wanted.start);
    if (of_start == files->end()) return no_checkpoint(paths_.checkpoints(), wanted.start);
    for (const std::string& name : of_start->second) {
      if (!tensors::is_fleet_file(name)) continue;
      auto added = node::add_file(host_.disk, *led.supply, name, paths_.checkpoints() + "/" + name);
      if (!added.ok()) return added.error();
    }
  }
  led.configuration = led_configuration_bytes({.run = run_id_,
                                               .checkpoints = paths_.checkpoints(),
                                               .fingerprint = own.fingerprint,
                                               .start = wanted.start,
                                               .steps = own.steps,
                                               .keys = settings::to_toml(config())});
  return led;
}

Result<bool> SectionedTraining::delivered(std::size_t) {
  // What members elsewhere deliver is taken for a checkpoint.
  const StepNumber last(sections().steps);
  auto files = whole(paths_.parts(), last, nullptr);
  if (!files) files = whole(paths_.checkpoints(), last, nullptr);
  parts_.clear();
  if (files) parts_ = *std::move(files);
  return !parts_.empty();
}

Result<std::span<const std::byte>> SectionedTraining::result(const std::string& section) const {
  for (const tensors::CheckpointFile& file : parts_) {
    if (file.size_of(section)) return file.section(section);
  }
  return Error{.kind = ErrorKind::kBadData, .where = paths_.parts(), .what = "nobody delivered " + section};
}

}  // namespace gossamer::commands
