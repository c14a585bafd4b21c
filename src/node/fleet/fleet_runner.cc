// SPDX-License-Identifier: Apache-2.0
#include "node/fleet/fleet_runner.h"

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "engines/sparse/fleet/layout.h"
#include "node/cluster/event_loop.h"
#include "node/fleet/fleet_plan.h"
#include "node/fleet/member_job.h"
#include "node/fleet/node_processes.h"
#include "node/fleet/part_file.h"
#include "node/fleet/step_reports.h"

namespace gossamer::node {
namespace {

constexpr std::size_t kLossWindow = 100;

// One training, from the start of the nodes to their end.
class FleetTraining {
 public:
  FleetTraining(const NodeHost& host, std::string run, const engine::TrainInputs& inputs,
                const engine::TrainHooks& hooks, NodeProcesses& nodes, engine::FleetShape shape)
      : host_(host),
        in_(inputs),
        hooks_(hooks),
        nodes_(nodes),
        shape_(std::move(shape)),
        parts_at_(deliver_directory(run)),
        schedule_(engine::schedule_of(inputs.config, inputs.recipe)),
        reports_(host.disk, parts_at_) {}

  Result<engine::TrainOutcome> run() {
    EventLoop loop(host_.clock);
    loop.run(
        [this]() -> std::optional<Instant> {
          work();
          return std::nullopt;
        },
        [this] { return ending_ && nodes_.all_ended(); });
    tell_steps();  // what they wrote last
    if (failure_) return *failure_;
    engine::TrainOutcome outcome;
    outcome.steps = parts_.empty() ? steps_ : in_.recipe.steps;
    outcome.samples = outcome.steps * in_.config.train.batch;
    outcome.final_loss = std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                         static_cast<double>(std::max<std::size_t>(1, losses_.size()));
    if (parts_.empty()) return outcome;
    const sparse::RowOrder order(in_.labels.count, shape_.shard_shift);
    auto network = put_together(host_.disk, parts_, shape_, order);
    if (!network.ok()) return network.error();
    outcome.network = *std::move(network);
    // Only room is lost if they stay.
    static_cast<void>(host_.disk.remove_all(parts_at_));
    return outcome;
  }

 private:
  void work() {
    tell_steps();
    if (ending_) return;
    if (hooks_.stop_requested()) return end();
    if (auto parts = list_parts(host_.disk, parts_at_, shape_, StepNumber(in_.recipe.steps)); !parts.ok()) {
      return fail(parts.error());
    } else if (cover(*parts, shape_)) {
      parts_ = *std::move(parts);
      return end();
    }
    if (auto good = nodes_.look(steps_ > 0); !good.ok()) fail(good.error());
  }

  void tell_steps() {
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

  const NodeHost& host_;
  const engine::TrainInputs& in_;
  const engine::TrainHooks& hooks_;
  NodeProcesses& nodes_;
  const engine::FleetShape shape_;
  const std::string parts_at_;
  const sparse::Schedule schedule_;
  StepReportReader reports_;
  std::uint64_t steps_ = 0;  // that are known to be done
  std::deque<double> losses_;
  std::vector<PartFile> parts_;  // of the trained network, all of it
  bool ending_ = false;
  std::optional<Error> failure_;
};

}  // namespace

std::uint64_t FleetRunner::memory_needed(const engine::TrainConfig& config, const engine::Recipe& recipe,
                                         const engine::DataShape& shape) const {
  return fleet_memory_needed(config, recipe, shape, options_.nodes);
}

Result<engine::TrainOutcome> FleetRunner::train(const RunPaths& paths, const engine::TrainInputs& inputs,
                                                const engine::TrainHooks& hooks) {
  const engine::FleetShape shape{
      .network = engine::network_shape(inputs.recipe, inputs.schema.features(), inputs.schema.labels()),
      .shard_shift = fleet_shard_shift(inputs.schema.labels(), options_.nodes)};
  auto nodes = NodeProcesses::start(host_, {.run = paths.root,
                                            .nodes = options_.nodes,
                                            .threads_each = options_.threads_each,
                                            .program = options_.program});
  if (!nodes.ok()) return nodes.error();
  host_.say(fmt::format("{} nodes, {} threads each; what they say is in {}/nodes/*.log", options_.nodes,
                        options_.threads_each, paths.root));
  FleetTraining training(host_, paths.root, inputs, hooks, **nodes, shape);
  auto outcome = training.run();
  cost_ = (*nodes)->cost();
  return outcome;
}

}  // namespace gossamer::node
