// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_watch.h"

#include <utility>

#include "engines/sparse/fleet/fleet_resume.h"

namespace gossamer::commands {
namespace {

constexpr Duration kLookEvery{100'000'000};

}  // namespace

FleetWatch::FleetWatch(const run::NodeHost& host, const sparse_engine::TrainInputs& inputs,
                       const sparse_engine::TrainHooks& hooks, FleetProgress& progress,
                       const Options& options)
    : host_(host),
      in_(inputs),
      hooks_(hooks),
      progress_(progress),
      keeper_(host.disk, {.directory = inputs.checkpoint_directory,
                          .run = sparse_engine::checkpointed_run(inputs),
                          .keep = inputs.config.checkpoint.keep,
                          .start = options.start,
                          .keeps_start = !options.delivered.empty(),
                          .delivered = options.delivered}),
      begin_(host.clock.now()) {}

std::optional<std::string> FleetWatch::over() {
  if (over_ || host_.clock.now() < next_look_) return over_;
  next_look_ = host_.clock.now() + kLookEvery;
  look(FleetProgress::Until::kNow);
  const auto done = trained();
  if (!done.ok()) {
    fail(done.error());
  } else if (*done) {
    over_ = "the network is trained";
  } else if (own_ != nullptr) {
    look_at_own();
  }
  return over_;
}

// Whether the trained network is delivered, and measured if it is to be. Its parts are those that were
// measured: a part that was lost and computed anew is the same only to rounding. Where nobody is left to be
// asked, another process measures the model.
Result<bool> FleetWatch::trained() {
  auto delivered = progress_.delivered();
  if (!delivered.ok() || !*delivered || measuring_ == nullptr || measuring_->given_up()) return delivered;
  delivered = progress_.delivered(measuring_->holders());
  if (!delivered.ok() || !*delivered || !measuring_->done())
    return delivered.ok() ? Result(false) : delivered;
  progress_.measured(*measuring_->take());
  return true;
}

void FleetWatch::look_at_own() {
  if (hooks_.stop_requested()) {
    over_ = "the run was asked to stop";
  } else if (!lead_->stopping()) {
    if (auto good = own_->look(progress_.stepping()); !good.ok()) fail(good.error());
  }
}

void FleetWatch::fail(const Error& error) {
  failure_ = error;
  over_ = error.message();
}

void FleetWatch::look(FleetProgress::Until until) {
  progress_.tell_steps();
  progress_.tell_recoveries(until);
  keeper_.look(info(), hooks_.events);
}

tensors::CheckpointInfo FleetWatch::info() const {
  const double others = own_ != nullptr ? own_->cost().cpu_seconds : 0;
  return progress_.info({.load_seconds = in_.load_seconds,
                         .train_seconds = (host_.clock.now() - begin_).seconds(),
                         .cpu_seconds = host_.clock.process_cpu().seconds() + others});
}

void FleetWatch::save_trained(sparse::Network& network) {
  const sparse_engine::CheckpointConfig& when = in_.config.checkpoint;
  if (when.every_steps == 0 && when.every_minutes == 0) return;
  const StepNumber last(in_.recipe.steps);
  tensors::CheckpointInfo trained = info();
  trained.next_step = last;
  auto saved = sparse_engine::save_trained_checkpoint(in_, std::move(trained), network);
  if (saved.ok()) return keeper_.add(last);
  hooks_.events("checkpoint_failed", {{"step", last.value}, {"error", saved.error().message()}});
}

}  // namespace gossamer::commands
