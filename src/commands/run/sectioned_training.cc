// SPDX-License-Identifier: Apache-2.0
#include "commands/run/sectioned_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "commands/run/led_configuration.h"
#include "commands/run/run_lead.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

// Bytes of a file of sections beside them.
constexpr std::uint64_t kHeaderRoom = std::uint64_t{1} << 20;

const auto kNobody = [](std::string_view, EventFields) {};

Error no_checkpoint(const std::string& directory, StepNumber step) {
  return {.where = directory,
          .what = fmt::format("the checkpoint of step {} is gone", step.value),
          .expected = "the one that the run began with",
          .fix = "leave the run's files alone while it runs"};
}

Error no_step(const std::string& data, std::uint64_t samples) {
  return {.kind = ErrorKind::kBadData,
          .where = data,
          .what = "the run has no step",
          .got = fmt::format("{} samples", samples),
          .expected = "data for at least one step",
          .fix = "name other data"};
}

bool has_section(const std::vector<tensors::CheckpointFile>& files, const std::string& name) {
  return std::ranges::any_of(files, [&](const auto& file) { return file.size_of(name).has_value(); });
}

Error wrong_size(const std::string& section, std::uint64_t got, std::uint64_t expected) {
  return {.kind = ErrorKind::kBadData,
          .where = "section " + section,
          .what = "its size is another than the run's",
          .got = fmt::format("{} bytes", got),
          .expected = fmt::format("{} bytes", expected),
          .fix = "look whether all machines run this version"};
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
  if (lead_) {
    if (auto loaded = load(); !loaded.ok()) return loaded;
    if (const Sections own = sections(); own.steps == 0) return no_step(own.data, facts().samples);
    return {};
  }
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

// The newest one that is whole and undamaged. Nothing is removed before all that are newer could be looked
// at.
Result<LedTraining::Start> SectionedTraining::find_start(EventSink events) {
  const auto files = tensors::list_fleet_files(host_.disk, paths_.checkpoints());
  if (!files.ok()) return files.error();
  Start start;
  std::vector<std::string> worthless;
  for (auto step = files->rbegin(); step != files->rend(); ++step) {
    auto found = undamaged(step->first, events);
    if (!found.ok()) return found.error();
    if (found->has_value()) {
      start = {.from = std::move((*found)->info), .trained = step->first.value == sections().steps};
      break;
    }
    if (checkpoint(step->first)) worthless.insert(worthless.end(), step->second.begin(), step->second.end());
  }
  for (const std::string& name : worthless) {
    auto removed = host_.disk.remove_all(paths_.checkpoints() + "/" + name);
    if (!removed.ok()) return removed.error();
  }
  return start;
}

Result<DoneSteps> SectionedTraining::take_trained(const engine::TrainHooks& hooks) {
  const StepNumber last(sections().steps);
  auto found = undamaged(last, hooks.events);
  if (!found.ok()) return found.error();
  if (!found->has_value()) return no_checkpoint(paths_.checkpoints(), last);
  parts_ = std::move((*found)->files);
  const tensors::CheckpointInfo& info = (*found)->info;
  const double sum = std::accumulate(info.losses.begin(), info.losses.end(), 0.0);
  return DoneSteps{.steps = last.value,
                   .all = true,
                   .final_loss = sum / static_cast<double>(std::max<std::size_t>(1, info.losses.size())),
                   .resumed_at = last,
                   .cost_before = info.cost};
}

Result<SectionedTraining::Whole> SectionedTraining::whole(const std::string& directory, StepNumber step,
                                                          EventSink events) const {
  const Sections own = sections();
  auto found = tensors::open_fleet_files(host_.disk, directory, own.fingerprint, step, events);
  if (!found.ok() || !found->has_value()) return found;
  const auto& files = (*found)->files;
  const bool all =
      std::ranges::all_of(own.all, [&](const Section& one) { return has_section(files, one.name); });
  return all ? std::move(found) : Whole();
}

Result<void> SectionedTraining::verify(const std::vector<tensors::CheckpointFile>& files,
                                       EventSink events) const {
  for (const Section& one : sections().all) {
    const auto bytes = tensors::fleet_section(files, one.name, events);
    if (!bytes.ok()) return bytes.error();
    if (bytes->size() != one.bytes) return wrong_size(one.name, bytes->size(), one.bytes);
  }
  return {};
}

// The checkpoint of a step, if it is whole and undamaged.
Result<SectionedTraining::Whole> SectionedTraining::undamaged(StepNumber step, EventSink events) const {
  auto found = whole(paths_.checkpoints(), step, events);
  if (!found.ok() || !found->has_value()) return found;
  if (auto good = verify((*found)->files, events); !good.ok())
    return good.error().kind == ErrorKind::kBadData ? Result<Whole>(Whole()) : good.error();
  return found;
}

std::optional<tensors::CheckpointInfo> SectionedTraining::checkpoint(StepNumber step) const {
  auto found = whole(paths_.checkpoints(), step, kNobody);
  return found.ok() && found->has_value() ? std::optional(std::move((*found)->info)) : std::nullopt;
}

Result<Led> SectionedTraining::lead(const FleetWanted& wanted) {
  const Sections own = sections();
  if (auto made = host_.disk.make_directories(paths_.cache()); !made.ok()) return made.error();
  Led led = workload(wanted.start);
  led.supply =
      node::Supply{.directory = paths_.cache(), .deliver = paths_.parts(), .most_bytes = kHeaderRoom};
  for (const Section& one : own.all) led.supply->most_bytes += one.bytes;
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

std::optional<LedTraining::DeliveredFile> SectionedTraining::read_delivered(std::string_view name) const {
  const auto file = tensors::read_fleet_file_name(name);
  if (!file) return std::nullopt;
  return DeliveredFile{
      .node = file->node, .step = file->step, .result = false, .name = tensors::fleet_file_name(*file)};
}

Result<void> SectionedTraining::check_delivered(const std::string& path, const DeliveredFile& file,
                                                std::span<const Owned> owned) const {
  const std::vector<Section> all = sections().all;
  const auto may_have = [&](const std::string& name, std::uint64_t bytes) {
    const auto thing = thing_of(name);
    const bool is_one =
        std::ranges::any_of(all, [&](const Section& one) { return one.name == name && one.bytes == bytes; });
    return thing && is_one &&
           std::ranges::any_of(owned, [&](const Owned& one) { return one.things.contains(*thing); });
  };
  return tensors::check_fleet_file(host_.disk, path,
                                   {.step = file.step, .fingerprint = sections().fingerprint}, may_have);
}

// What members elsewhere deliver is taken for a checkpoint.
Result<bool> SectionedTraining::delivered(std::size_t) {
  parts_.clear();
  for (const std::string& directory : {paths_.parts(), paths_.checkpoints()}) {
    auto found = whole(directory, StepNumber(sections().steps), kNobody);
    if (!found.ok()) return found.error();
    if (!found->has_value()) continue;
    parts_ = std::move((*found)->files);
    return true;
  }
  return false;
}

Result<void> SectionedTraining::take_delivered() {
  auto good = verify(parts_, kNobody);
  if (!good.ok()) parts_.clear();
  return good;
}

// A checkpoint of the last step is there if members wrote one. Its record was written before all steps were
// told.
Result<bool> SectionedTraining::keep_trained(const tensors::CheckpointInfo& info) {
  if (!checkpoint(info.next_step)) return false;
  tensors::CheckpointInfo record = info;
  record.config_fingerprint = sections().fingerprint;
  if (auto kept = tensors::write_run_record(host_.disk, paths_.checkpoints(), record); !kept.ok())
    return kept.error();
  return false;
}

Result<std::span<const std::byte>> SectionedTraining::result(const std::string& section) const {
  return tensors::fleet_section(parts_, section, kNobody);
}

}  // namespace gossamer::commands
