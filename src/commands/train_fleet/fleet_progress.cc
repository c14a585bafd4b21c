// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "commands/train_fleet/measured_file.h"
#include "commands/train_fleet/member_job.h"
#include "commands/train_fleet/part_tensors.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "run/run_directory.h"

namespace gossamer::commands {
namespace {

constexpr std::size_t kLossWindow = 100;

}  // namespace

FleetProgress::FleetProgress(const run::NodeHost& host, const std::string& run,
                             const sparse_engine::TrainInputs& inputs, const sparse_engine::TrainHooks& hooks,
                             sparse_engine::FleetShape shape, tensors::CheckpointInfo from)
    : host_(host),
      in_(inputs),
      hooks_(hooks),
      shape_(std::move(shape)),
      run_(run),
      parts_at_(run::RunPaths(run).parts()),
      schedule_(sparse_engine::schedule_of(inputs.config, inputs.recipe)),
      reports_(host.disk, parts_at_),
      recovery_reports_(host.disk, parts_at_),
      from_(std::move(from)),
      steps_(from_.next_step.value),
      losses_(from_.losses.begin(), from_.losses.end()) {
  // If this fails, the use of the directory will fail with the reason.
  static_cast<void>(host.disk.make_directories(parts_at_));
}

void FleetProgress::tell_steps() {
  for (const StepLoss& one : reports_.read()) {
    steps_ = one.step.value + 1;
    losses_.push_back(one.loss);
    if (losses_.size() > kLossWindow) losses_.pop_front();
    const std::uint64_t samples = steps_ * in_.config.train.batch;
    hooks_.on_step({.steps_done = steps_,
                    .steps_total = in_.recipe.steps,
                    .samples_done = samples,
                    .epoch = static_cast<double>(samples) / static_cast<double>(in_.schema.size()),
                    .loss = one.loss,
                    .learning_rate = schedule_.learning_rate(one.step)});
  }
  for (const CheckpointFailure& one : reports_.take_failures()) {
    hooks_.events("checkpoint_failed", {{"step", one.step.value}, {"error", one.message}});
    host_.say(fmt::format("warning: no checkpoint of step {}: {}", one.step.value, one.message));
    not_written_ = one.message;
  }
}

void FleetProgress::tell_recoveries(Until until) {
  if (until == Until::kNow && !stepping()) return;
  const StepNumber before(until == Until::kEnd ? std::numeric_limits<std::uint64_t>::max() : steps_ - 1);
  for (engine::FleetRecovery& one : recovery_reports_.read(before)) {
    if (name_) one.cause = name_(std::move(one.cause));
    host_.say(fmt::format(
        "{}: it cost {:.2f} s{}", one.cause, one.total.seconds(),
        one.steps_replayed == 0 ? "" : fmt::format(", and {} steps were computed anew", one.steps_replayed)));
    std::apply([this](const auto&... field) { hooks_.events("recovery", {field...}); },
               engine::fields_of(one));
    recoveries_.push_back(std::move(one));
  }
}

void FleetProgress::add_to(StepRunner::Cost& cost) const {
  const auto [steps, background] = reports_.bytes_of_step();
  cost.step_bytes = steps;
  cost.background_bytes = background;
  cost.recoveries = recoveries_;
}

tensors::CheckpointInfo FleetProgress::info(const tensors::RunCost& cost) const {
  tensors::RunCost all = cost;
  all += from_.cost;
  return {.next_step = StepNumber(steps_),
          .run_id = in_.run_id,
          .config_fingerprint = {},
          .workers = in_.compute.workers(),
          .cost = all,
          .losses = {losses_.begin(), losses_.end()}};
}

Error FleetProgress::not_saved(StepNumber newest) const {
  return {.where = in_.checkpoint_directory,
          .what = fmt::format("the nodes have ended without a checkpoint of step {}", steps_),
          .got = not_written_.empty() ? "nodes that did not write one in time" : not_written_,
          .expected = "files of all nodes",
          .fix = newest > StepNumber() ? fmt::format("--resume goes on from step {}", newest.value)
                                       : "mend the cause and start again"};
}

Result<bool> FleetProgress::delivered(const std::optional<std::set<NodeId>>& by) {
  auto parts = list_parts(host_.disk, parts_at_, shape_, StepNumber(in_.recipe.steps));
  if (!parts.ok()) return parts.error();
  if (by) std::erase_if(*parts, [&by](const PartFile& one) { return !by->contains(one.header.node); });
  if (!cover(*parts, shape_)) return false;
  parts_ = *std::move(parts);
  return true;
}

bool FleetProgress::was_measured() const {
  return load_measured(host_.disk, parts_at_, StepNumber(in_.recipe.steps)).has_value();
}

void FleetProgress::measured(Result<Measured> measured) {
  const StepNumber trained(in_.recipe.steps);
  // A part of a member that was lost since is the same only to rounding. The model is to be the measured one,
  // whichever process makes it.
  if (const auto all = list_parts(host_.disk, parts_at_, shape_, trained); all.ok()) {
    for (const PartFile& one : *all) {
      if (std::ranges::find(parts_, one.path, &PartFile::path) == parts_.end())
        static_cast<void>(host_.disk.remove_all(one.path));
    }
  }
  // If the file cannot be written, a later process measures again.
  if (measured.ok()) static_cast<void>(save_measured(host_.disk, parts_at_, trained, *measured));
  measured_ = std::move(measured);
}

Result<sparse_engine::TrainOutcome> FleetProgress::outcome() const {
  sparse_engine::TrainOutcome outcome;
  outcome.steps = parts_.empty() ? steps_ : in_.recipe.steps;
  outcome.samples = outcome.steps * in_.config.train.batch;
  outcome.final_loss = std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                       static_cast<double>(std::max<std::size_t>(1, losses_.size()));
  if (from_.next_step > StepNumber()) outcome.resumed_at = from_.next_step;
  outcome.cost_before = from_.cost;
  if (parts_.empty() || sparse_engine::stays_in_parts(in_.config)) return outcome;
  const sparse::RowOrder order(in_.labels.count, shape_.shard_shift);
  auto network = put_together(host_.disk, parts_, shape_, order);
  if (!network.ok()) return network.error();
  outcome.network = *std::move(network);
  return outcome;
}

Result<std::optional<NetworkInParts>> FleetProgress::in_parts() const {
  if (parts_.empty() || !sparse_engine::stays_in_parts(in_.config)) return std::optional<NetworkInParts>();
  std::optional<Result<Measured>> measured = measured_;
  if (!measured) {
    if (auto before = load_measured(host_.disk, parts_at_, StepNumber(in_.recipe.steps)))
      measured = *std::move(before);
  }
  const sparse::RowOrder order(in_.labels.count, shape_.shard_shift);
  auto tensors = PartTensors::open(host_.disk, parts_, shape_, order);
  if (!tensors.ok()) return tensors.error();
  return std::optional(
      NetworkInParts{.tensors = (*tensors)->tensors(), .holder = *tensors, .measured = std::move(measured)});
}

Result<TrainedNetwork> FleetProgress::trained() const {
  auto parts = in_parts();
  if (!parts.ok()) return parts.error();
  auto outcome = this->outcome();
  if (!outcome.ok()) return outcome.error();
  return TrainedNetwork{.outcome = *std::move(outcome), .parts = *std::move(parts)};
}

Result<std::optional<TrainedNetwork>> trained_before(FleetProgress& progress) {
  using Found = std::optional<TrainedNetwork>;
  const auto unusable = [](const Error& error) -> Result<Found> {
    if (error.kind == ErrorKind::kBadData) return Found();
    return error;
  };
  const auto there = progress.delivered();
  if (!there.ok()) return unusable(there.error());
  if (!*there) return Found();
  progress.tell_steps();
  auto trained = progress.trained();
  if (!trained.ok()) return unusable(trained.error());
  return Found(*std::move(trained));
}

void tell_start(const run::NodeHost& host, const tensors::CheckpointInfo& from,
                const sparse_engine::TrainHooks& hooks) {
  if (from.next_step == StepNumber()) return;
  host.say(fmt::format("goes on at step {}", from.next_step.value));
  hooks.events("resumed", {{"step", from.next_step.value}, {"from_run", from.run_id}});
}

// The second directory has deliveries of members elsewhere that are on their way.
void remove_delivered(host::Disk& disk, const std::string& run) {
  const std::string parts = run::RunPaths(run).parts();
  for (const std::string& one : {parts, parts + ".incoming"}) static_cast<void>(disk.remove_all(one));
}

}  // namespace gossamer::commands
