// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/sparse_led.h"

#include <memory>
#include <utility>

#include "commands/train_fleet/fleet_configuration.h"
#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/member_job.h"
#include "commands/train_fleet/part_tensors.h"
#include "commands/train_fleet/rank_file.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/fleet/step/fleet_job.h"

namespace gossamer::commands {

SparseLed::SparseLed(const run::NodeHost& host, const run::RunPaths& paths,
                     const sparse_engine::TrainInputs& inputs)
    : host_(host),
      paths_(paths),
      in_(inputs),
      schedule_(sparse_engine::schedule_of(inputs.config, inputs.recipe)) {}

LedTraining::Facts SparseLed::led_facts() const {
  return {.run_id = in_.run_id,
          .fingerprint = sparse_engine::checkpointed_run(in_).fingerprint,
          .steps = in_.recipe.steps,
          .batch = in_.config.train.batch,
          .samples = in_.schema.size(),
          .checkpoints = in_.config.checkpoint.keep,
          .load_seconds = in_.load_seconds};
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
                                                          sparse_engine::checkpointed_run(in_), step);
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
  auto workload = std::make_unique<sparse_engine::FleetWorkload>(lead->shape, lead->workload);
  auto tracks = workload->tracks();
  return Led{.workload = std::move(workload),
             .tracks = std::move(tracks),
             .supply = std::move(lead->supply),
             .configuration = fleet_configuration_bytes(lead->configuration)};
}

sparse_engine::FleetShape SparseLed::shape(std::size_t members) const {
  const std::uint32_t labels = in_.schema.labels();
  return {.network = sparse_engine::network_shape(in_.recipe, in_.schema.features(), labels),
          .shard_shift = fleet_shard_shift(labels, members)};
}

// Members may measure what they have trained. Then their measurements are part of the result.
Result<bool> SparseLed::delivered(std::size_t members) {
  shape_ = shape(members);
  const StepNumber trained(in_.recipe.steps);
  auto parts = list_parts(host_.disk, paths_.parts(), shape_, trained);
  if (!parts.ok()) return parts.error();
  if (!cover(*parts, shape_)) return false;
  parts_ = *std::move(parts);
  if (in_.config.data.test.empty() || !sparse_engine::stays_in_parts(in_.config)) return true;
  auto ranks = load_ranks(host_.disk, paths_.parts(), trained);
  if (!ranks.ok()) return ranks.error();
  ranks_ = *std::move(ranks);
  if (!parts_since_) {
    parts_since_ = host_.clock.now();
    if (!ranks_) host_.say("all steps are done; the nodes measure what they have trained");
  }
  measured_in_ = host_.clock.now() - *parts_since_;
  return ranks_.has_value();
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
    in_parts_ = NetworkInParts{.tensors = (*tensors)->tensors(),
                               .holder = *tensors,
                               .ranks = ranks_,
                               .eval_seconds = measured_in_.seconds()};
    return {};
  }
  auto network = put_together(host_.disk, parts_, shape_, order);
  if (!network.ok()) return network.error();
  network_ = *std::move(network);
  return {};
}

Result<bool> SparseLed::keep_trained(tensors::CheckpointInfo info) {
  const sparse_engine::CheckpointConfig& when = in_.config.checkpoint;
  if (!network_ || (when.every_steps == 0 && when.every_minutes == 0)) return false;
  if (auto saved = sparse_engine::save_trained_checkpoint(in_, std::move(info), *network_); !saved.ok())
    return saved.error();
  return true;
}

std::optional<sparse::Network> SparseLed::take_network() { return std::exchange(network_, std::nullopt); }
std::optional<NetworkInParts> SparseLed::take_parts() { return std::exchange(in_parts_, std::nullopt); }

}  // namespace gossamer::commands
