// SPDX-License-Identifier: Apache-2.0
#include "commands/train_fleet/lead_runner.h"

#include <string>

#include "commands/train_fleet/fleet_plan.h"
#include "commands/train_fleet/member_job.h"
#include "commands/train_fleet/sparse_led.h"

namespace gossamer::commands {

LeadRunner::LeadRunner(const run::NodeHost& host, LeadOptions options)
    : host_(host),
      own_(options.own ? options.own->nodes : 0),
      lead_(host, std::string(kSparseEngine), std::move(options)) {}

std::uint64_t LeadRunner::memory_needed(const sparse_engine::TrainConfig& config,
                                        const sparse_engine::Recipe& recipe,
                                        const sparse_engine::DataShape& shape) const {
  return own_ > 0 ? fleet_memory_needed(config, recipe, shape, own_) : 0;
}

Result<sparse_engine::TrainOutcome> LeadRunner::train(const run::RunPaths& paths,
                                                      const sparse_engine::TrainInputs& inputs,
                                                      const engine::TrainHooks& hooks) {
  paths_ = paths;
  SparseLed led(host_, paths, inputs, measure_);
  const auto done = lead_.train(paths, led, hooks);
  if (!done.ok()) return done.error();
  parts_of_ = led.parts();
  parts_ = led.take_parts();
  sparse_engine::TrainOutcome outcome;
  outcome.network = led.take_network();
  outcome.steps = done->steps;
  outcome.samples = done->steps * inputs.config.train.batch;
  outcome.final_loss = done->final_loss;
  outcome.resumed_at = done->resumed_at;
  outcome.cost_before = done->cost_before;
  return outcome;
}

}  // namespace gossamer::commands
