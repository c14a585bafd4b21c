// SPDX-License-Identifier: Apache-2.0
#include "commands/run/fleet_watch.h"

#include <utility>

namespace gossamer::commands {
namespace {

constexpr Duration kLookEvery{100'000'000};

}  // namespace

FleetWatch::FleetWatch(const run::NodeHost& host, const run::RunPaths& paths, LedTraining& training,
                       const engine::TrainHooks& hooks, FleetProgress& progress, const Options& options)
    : host_(host),
      training_(training),
      facts_(training.led_facts()),
      start_(options.start),
      members_(options.members),
      owners_(options.owners),
      hooks_(hooks),
      progress_(progress),
      keeper_(host.disk,
              {.directory = paths.checkpoints(),
               .fingerprint = facts_.fingerprint,
               .whole = [&training](StepNumber step) { return training.checkpoint(step).has_value(); },
               .keep = facts_.checkpoints,
               .start = options.start,
               .keeps_start = !options.delivered.empty(),
               .delivered = options.delivered}),
      begin_(options.began.value_or(host.clock.now())) {}

std::optional<std::string> FleetWatch::over() {
  if (over_ || host_.clock.now() < next_look_) return over_;
  next_look_ = host_.clock.now() + kLookEvery;
  look(FleetProgress::Until::kNow);
  progress_.sync_reports(host_.clock.now());
  const auto delivered = training_.delivered(members_);
  if (!delivered.ok()) {
    fail(delivered.error());
  } else if (*delivered) {
    over_ = facts_.over;
  } else if (own_ != nullptr) {
    look_at_own();
  }
  return over_;
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
  const StepNumber before = keeper_.newest();
  const bool ends = until == FleetProgress::Until::kEnd;
  if (ends) keeper_.look(info(), hooks_.events);
  progress_.tell_steps(done(until));
  if (ends) progress_.tell_late_steps(done(until));
  progress_.tell_recoveries(until);
  if (!ends) keeper_.look(info(), hooks_.events);
  if (ends && keeper_.newest() > before) keeper_.record(info());
}

// The steps that are known to be done, whatever members tell of them. At the end marks may be missing: the
// checkpoint that members left shows how far they were.
std::optional<StepNumber> FleetWatch::done(FleetProgress::Until until) const {
  if (owners_ == nullptr) return std::nullopt;
  const StepNumber marked = owners_->committed().value_or(StepNumber());
  if (until == FleetProgress::Until::kNow) return marked;
  if (training_.parts() > 0) return StepNumber(facts_.steps);
  return std::max(marked, keeper_.newest());
}

tensors::CheckpointInfo FleetWatch::info() const {
  const double others = own_ != nullptr ? own_->cost().cpu_seconds : 0;
  return progress_.info({.load_seconds = facts_.load_seconds,
                         .train_seconds = (host_.clock.now() - begin_).seconds(),
                         .cpu_seconds = host_.clock.process_cpu().seconds() + others});
}

void FleetWatch::keep_trained() {
  const StepNumber last(facts_.steps);
  tensors::CheckpointInfo trained = info();
  trained.next_step = last;
  const auto kept = training_.keep_trained(trained);
  if (kept.ok() && *kept) keeper_.add(last);
  if (!kept.ok())
    hooks_.events("checkpoint_failed", {{"step", last.value}, {"error", kept.error().message()}});
}

}  // namespace gossamer::commands
