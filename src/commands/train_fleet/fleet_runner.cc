// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/fleet_runner.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "commands/train_fleet/checkpoint_keeper.h"
#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/fleet_progress.h"
#include "commands/train_fleet/member_job.h"
#include "engines/sparse/fleet/fleet_resume.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"
#include "node/event_loop.h"
#include "node/node_processes.h"

namespace gossamer::commands {
namespace {

// One training, from the start of the nodes to their end.
class FleetTraining {
 public:
  FleetTraining(const run::NodeHost& host, const sparse_engine::TrainInputs& inputs,
                const sparse_engine::TrainHooks& hooks, FleetProgress& progress, node::NodeProcesses& nodes)
      : host_(host),
        in_(inputs),
        hooks_(hooks),
        progress_(progress),
        nodes_(nodes),
        keeper_(host.disk, {.directory = inputs.checkpoint_directory,
                            .run = sparse_engine::checkpointed_run(inputs),
                            .keep = inputs.config.checkpoint.keep,
                            .start = StepNumber(progress.steps())}),
        begin_(host.clock.now()) {}

  Result<sparse_engine::TrainOutcome> run() {
    node::EventLoop loop(host_.clock);
    loop.run(
        [this]() -> std::optional<Instant> {
          work();
          return std::nullopt;
        },
        [this] { return ending_ && nodes_.all_ended(); });
    look();  // reads what the nodes wrote last
    progress_.tell_recoveries(FleetProgress::Until::kEnd);
    if (failure_) return *failure_;
    if (progress_.parts() == 0 && keeper_.newest().value < progress_.steps())
      return progress_.not_saved(keeper_.newest());
    auto outcome = progress_.outcome();
    if (!outcome.ok() || !outcome->network) return outcome;
    save_trained(*outcome->network);
    return outcome;
  }

 private:
  void look() {
    progress_.tell_steps();
    progress_.tell_recoveries(FleetProgress::Until::kNow);
    keeper_.look(info(), hooks_.events);
  }

  void work() {
    look();
    if (ending_) return;
    if (hooks_.stop_requested()) return end();
    if (const auto delivered = progress_.delivered(); !delivered.ok()) {
      return fail(delivered.error());
    } else if (*delivered) {
      return end();
    }
    if (auto good = nodes_.look(progress_.stepping()); !good.ok()) fail(good.error());
  }

  [[nodiscard]] tensors::CheckpointInfo info() const {
    return progress_.info({.load_seconds = in_.load_seconds,
                           .train_seconds = (host_.clock.now() - begin_).seconds(),
                           .cpu_seconds = host_.clock.process_cpu().seconds() + nodes_.cost().cpu_seconds});
  }

  // Saves the trained network as one process keeps it. The rest of the work can be done with any number of
  // nodes. A failure costs only time.
  void save_trained(sparse::Network& network) {
    const sparse_engine::CheckpointConfig& when = in_.config.checkpoint;
    if (when.every_steps == 0 && when.every_minutes == 0) return;
    tensors::CheckpointInfo trained = info();
    trained.next_step = StepNumber(in_.recipe.steps);
    auto saved = sparse_engine::save_trained_checkpoint(in_, std::move(trained), network);
    if (saved.ok()) return keeper_.add(StepNumber(in_.recipe.steps));
    hooks_.events("checkpoint_failed", {{"step", in_.recipe.steps}, {"error", saved.error().message()}});
  }

  void end() {
    ending_ = true;
    nodes_.stop();
  }
  void fail(Error error) {
    ending_ = true;
    failure_ = std::move(error);
    nodes_.kill();
  }

  const run::NodeHost& host_;
  const sparse_engine::TrainInputs& in_;
  const sparse_engine::TrainHooks& hooks_;
  FleetProgress& progress_;
  node::NodeProcesses& nodes_;
  CheckpointKeeper keeper_;
  const Instant begin_;
  bool ending_ = false;
  std::optional<Error> failure_;
};

}  // namespace

std::uint64_t FleetRunner::memory_needed(const sparse_engine::TrainConfig& config,
                                         const sparse_engine::Recipe& recipe,
                                         const sparse_engine::DataShape& shape) const {
  return fleet_memory_needed(config, recipe, shape, options_.nodes);
}

Result<sparse_engine::TrainOutcome> FleetRunner::train(const run::RunPaths& paths,
                                                       const sparse_engine::TrainInputs& inputs,
                                                       const sparse_engine::TrainHooks& hooks) {
  const auto start = sparse_engine::prepare_fleet_start(inputs, hooks.events);
  if (!start.ok()) return start.error();
  if (start->trained) return sparse_engine::train(inputs, hooks);
  const tensors::CheckpointInfo& from = start->from;
  tell_start(host_, from, hooks);
  const sparse_engine::FleetShape shape{
      .network =
          sparse_engine::network_shape(inputs.recipe, inputs.schema.features(), inputs.schema.labels()),
      .shard_shift = fleet_shard_shift(inputs.schema.labels(), options_.nodes)};
  run_ = paths.root;
  FleetProgress before(host_, paths.root, inputs, hooks, shape);
  auto trained = trained_before(before);
  if (!trained.ok()) return trained.error();
  if (trained->has_value()) {
    parts_ = std::move((*trained)->parts);
    return std::move((*trained)->outcome);
  }
  if (auto written = write_start(host_.disk, paths.root, from.next_step); !written.ok())
    return written.error();
  auto nodes = node::NodeProcesses::start(host_, {.run = paths.root,
                                                  .nodes = options_.nodes,
                                                  .threads_each = options_.threads_each,
                                                  .program = options_.program});
  if (!nodes.ok()) return nodes.error();
  host_.say(fmt::format("{} nodes, {} threads each; what they say is in {}/nodes/*.log", options_.nodes,
                        options_.threads_each, paths.root));
  FleetProgress progress(host_, paths.root, inputs, hooks, shape, from);
  progress.name_causes([&nodes](std::string cause) { return (*nodes)->as_seen(std::move(cause)); });
  FleetTraining training(host_, inputs, hooks, progress, **nodes);
  auto outcome = training.run();
  const node::NodeProcesses::Cost processes = (*nodes)->cost();
  cost_ = {.cpu_seconds = processes.cpu_seconds, .peak_rss_bytes = processes.peak_rss_bytes};
  progress.add_to(cost_);
  if (!outcome.ok()) return outcome;
  auto parts = progress.in_parts();
  if (!parts.ok()) return parts.error();
  parts_ = *std::move(parts);
  return outcome;
}

void FleetRunner::saved() { remove_delivered(host_.disk, run_); }

}  // namespace gossamer::commands
