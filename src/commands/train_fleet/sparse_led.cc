// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/sparse_led.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "commands/train_fleet/fleet_configuration.h"
#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/measured_file.h"
#include "commands/train_fleet/member_job.h"
#include "commands/train_fleet/part_tensors.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "learn/sparse/network/row_order.h"
#include "node/companion.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {

namespace {

// The lead's side of the questions by which it measures.
class MeasuringCompanion final : public node::Companion {
 public:
  explicit MeasuringCompanion(FleetMeasuring& measuring) : measuring_(measuring) {}
  // Ends the measuring before the node that it wakes.
  ~MeasuringCompanion() override { measuring_.end(); }
  MeasuringCompanion(const MeasuringCompanion&) = delete;
  MeasuringCompanion& operator=(const MeasuringCompanion&) = delete;

  void connect(net::Links* links) override { measuring_.asker().connect(links); }
  void placed(Epoch epoch, const std::string& decision) override {
    measuring_.asker().placed(epoch, decision);
  }
  void on(net::Arrived arrived, Instant now) override { measuring_.asker().on(arrived, now); }
  [[nodiscard]] std::vector<node::Misdeed> take_misdeeds() override {
    return measuring_.asker().take_misdeeds();
  }
  void tick(Instant now) override { measuring_.asker().tick(now); }
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::string> over() const override { return std::nullopt; }
  [[nodiscard]] std::vector<std::string> take_remarks() override { return {}; }

 private:
  FleetMeasuring& measuring_;
};

}  // namespace

SparseLed::SparseLed(const run::NodeHost& host, const run::RunPaths& paths,
                     const sparse_engine::TrainInputs& inputs, StepRunner::Measure measure)
    : host_(host),
      paths_(paths),
      in_(inputs),
      schedule_(sparse_engine::schedule_of(inputs.config, inputs.recipe)),
      measure_(std::move(measure)) {}

LedTraining::Facts SparseLed::led_facts() const {
  return {.run_id = in_.run_id,
          .fingerprint = sparse_engine::checkpointed_run(in_).fingerprint,
          .steps = in_.recipe.steps,
          .batch = in_.config.train.batch,
          .samples = in_.schema.size(),
          .checkpoints = in_.config.checkpoint.keep,
          .load_seconds = in_.load_seconds,
          .over = "the network is trained",
          .active_rows = 0};
}

Result<LedTraining::Start> SparseLed::find_start(EventSink events) {
  auto start = sparse_engine::prepare_fleet_start(in_, events);
  if (!start.ok()) return start.error();
  return Start{.from = std::move(start->from), .trained = start->trained};
}

Result<DoneSteps> SparseLed::take_trained(const engine::TrainHooks& hooks) {
  auto outcome = sparse_engine::train(in_, hooks);
  if (!outcome.ok()) return outcome.error();
  network_ = std::move(outcome->network);
  return DoneSteps{.steps = outcome->steps,
                   .all = network_.has_value(),
                   .final_loss = outcome->final_loss,
                   .resumed_at = outcome->resumed_at,
                   .cost_before = outcome->cost_before};
}

std::optional<tensors::CheckpointInfo> SparseLed::checkpoint(StepNumber step) const {
  const auto whole = sparse_engine::FleetCheckpoint::open(in_.disk, in_.checkpoint_directory,
                                                          sparse_engine::checkpointed_run(in_), step,
                                                          [](std::string_view, EventFields) {});
  return whole.ok() ? std::optional(whole->info()) : std::nullopt;
}

Result<Led> SparseLed::lead(const FleetWanted& wanted) {
  auto lead = prepare_lead(host_.disk,
                           {.directory = paths_.root,
                            .id = in_.run_id,
                            .config = in_.config,
                            .recipe = in_.recipe,
                            .features = in_.schema.features(),
                            .labels = in_.schema.labels()},
                           wanted);
  if (!lead.ok()) return lead.error();
  led_ = lead->shape;
  auto workload = std::make_unique<sparse_engine::FleetWorkload>(lead->shape, lead->workload);
  auto tracks = workload->tracks();
  Led led{.workload = std::move(workload),
          .tracks = std::move(tracks),
          .supply = std::move(lead->supply),
          .configuration = fleet_configuration_bytes(lead->configuration)};
  if (measure_ && !load_measured(host_.disk, paths_.parts(), StepNumber(in_.recipe.steps))) {
    measuring_.emplace(
        host_, measure_,
        sparse_engine::ModelInParts{.shape = lead->shape,
                                    .order = sparse::RowOrder(in_.labels.count, lead->shape.shard_shift)});
    led.beside = LedBeside{.channel = sparse_engine::kQueryChannel,
                           .make = [this](node::Aside aside, node::Post post) {
                             measuring_->begin_loop(std::move(aside), std::move(post));
                             return std::make_unique<MeasuringCompanion>(*measuring_);
                           }};
  }
  return led;
}

std::optional<LedTraining::DeliveredFile> SparseLed::read_delivered(std::string_view name) const {
  if (const auto part = read_part_name(name))
    return DeliveredFile{.node = part->node, .step = part->step, .result = true, .name = part_name(*part)};
  const auto file = tensors::read_fleet_file_name(name);
  if (!file) return std::nullopt;
  return DeliveredFile{
      .node = file->node, .step = file->step, .result = false, .name = tensors::fleet_file_name(*file)};
}

// Decisions of another shape are of no use: none of this run's members had that part.
Result<void> SparseLed::check_delivered(const std::string& path, const DeliveredFile& file,
                                        std::span<const Owned> owned) const {
  sparse_engine::Pieces pieces;
  for (const Owned& one : owned) {
    const auto layout = sparse_engine::read_layout(one.decision, led_);
    const auto rank = layout.ok() ? layout->rank_of(file.node) : std::nullopt;
    if (rank) pieces.merge(sparse_engine::pieces_of(led_, layout->members[*rank].after));
  }
  if (file.result) {
    return check_part(host_.disk, path,
                      {.shape = led_,
                       .name = {.node = file.node, .step = file.step},
                       .owned = std::move(pieces),
                       .run = in_.run_id});
  }
  return sparse_engine::check_part_file(host_.disk, path, sparse_engine::checkpointed_run(in_),
                                        {.shape = led_, .step = file.step, .owned = std::move(pieces)});
}

sparse_engine::FleetShape SparseLed::shape(std::size_t members) const {
  const std::uint32_t labels = in_.schema.labels();
  return {.network = sparse_engine::network_shape(in_.recipe, in_.schema.features(), labels),
          .shard_shift = fleet_shard_shift(labels, members)};
}

// Whether the trained network is delivered, and measured if it is to be. Its parts are those that were
// measured: a part that was lost and computed anew is the same only to rounding. Where nobody is left to be
// asked, another process measures the model.
Result<bool> SparseLed::delivered(std::size_t members) {
  shape_ = shape(members);
  auto found = find(nullptr);
  if (!found.ok()) return found;
  if (!*found) parts_.clear();  // those of a fleet before this one are gone
  if (!*found || !measuring_ || measuring_->given_up()) return found;
  found = find_parts(measuring_->holders());
  if (!found.ok()) return found;
  if (!*found || !measuring_->done()) return false;
  keep_measured(*measuring_->take());
  return true;
}

Result<bool> SparseLed::find_parts(const std::set<NodeId>& by) { return find(&by); }

// Looks for the parts of the trained network; with `by` for those of these members.
Result<bool> SparseLed::find(const std::set<NodeId>* by) {
  auto parts = list_parts(host_.disk, paths_.parts(), shape_, StepNumber(in_.recipe.steps));
  if (!parts.ok()) return parts.error();
  if (by != nullptr)
    std::erase_if(*parts, [&by](const PartFile& one) { return !by->contains(one.header.node); });
  if (!cover(*parts, shape_)) return false;
  parts_ = *std::move(parts);
  return true;
}

// A part of a member that was lost since is the same only to rounding. The model is to be the measured one,
// whichever process makes it.
void SparseLed::keep_measured(Result<Measured> measured) {
  const StepNumber trained(in_.recipe.steps);
  if (const auto all = list_parts(host_.disk, paths_.parts(), shape_, trained); all.ok()) {
    for (const PartFile& one : *all) {
      if (std::ranges::find(parts_, one.path, &PartFile::path) == parts_.end())
        static_cast<void>(host_.disk.remove_all(one.path));
    }
  }
  // If the file cannot be written, a later process measures again.
  if (measured.ok()) static_cast<void>(save_measured(host_.disk, paths_.parts(), trained, *measured));
  measured_ = std::move(measured);
}

Result<void> SparseLed::take_delivered() {
  auto taken = put_parts_together();
  if (!taken.ok()) parts_.clear();
  return taken;
}

Result<void> SparseLed::put_parts_together() {
  const sparse::RowOrder order(in_.labels.count, shape_.shard_shift);
  if (sparse_engine::stays_in_parts(in_.config)) {
    auto tensors = PartTensors::open(host_.disk, parts_, shape_, order);
    if (!tensors.ok()) return tensors.error();
    if (!measured_) {
      if (auto before = load_measured(host_.disk, paths_.parts(), StepNumber(in_.recipe.steps)))
        measured_ = *std::move(before);
    }
    in_parts_ = NetworkInParts{.tensors = (*tensors)->tensors(), .holder = *tensors, .measured = measured_};
    return {};
  }
  auto network = put_together(host_.disk, parts_, shape_, order);
  if (!network.ok()) return network.error();
  network_ = *std::move(network);
  return {};
}

Result<bool> SparseLed::keep_trained(const tensors::CheckpointInfo& info) {
  const sparse_engine::CheckpointConfig& when = in_.config.checkpoint;
  if (!network_ || (when.every_steps == 0 && when.every_minutes == 0)) return false;
  if (auto saved = sparse_engine::save_trained_checkpoint(in_, info, *network_); !saved.ok())
    return saved.error();
  return true;
}

std::optional<sparse::Network> SparseLed::take_network() { return std::exchange(network_, std::nullopt); }
std::optional<NetworkInParts> SparseLed::take_parts() { return std::exchange(in_parts_, std::nullopt); }

}  // namespace gossamer::commands
