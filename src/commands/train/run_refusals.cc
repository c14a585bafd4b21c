// SPDX-License-Identifier: Apache-2.0
#include "commands/train/run_refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/human_bytes.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/predict/prediction_memory.h"

namespace gossamer::commands {

Error missing_data() {
  return {.kind = ErrorKind::kUsage,
          .where = "data.train",
          .what = "there is nothing to train on",
          .got = "no file",
          .expected = "the path of the training records",
          .fix = "add data.train=FILE"};
}

Error no_test_from_stdin(const std::string& path) {
  return {.kind = ErrorKind::kUsage,
          .where = "data.test",
          .what = "the test set cannot come from standard input or a pipe",
          .got = fmt::format("'{}'", path),
          .expected = "a file or an imported directory, which can be read twice",
          .fix = "write it to a file first"};
}

Error no_text_from_stdin(const std::string& path) {
  return {.kind = ErrorKind::kUsage,
          .where = "data.train",
          .what = "JSON lines cannot be trained on from standard input or a pipe, they are read twice",
          .got = fmt::format("'{}'", path),
          .expected = "a file or an imported directory",
          .fix = "import first: COMMAND | gossamer data import jsonl - --out DIR; then data.train=DIR"};
}

std::uint64_t run_memory(const run::NodeHost& host, const StepRunner* runner,
                         const sparse_engine::TrainConfig& config, const sparse_engine::Recipe& recipe,
                         const sparse_engine::DataShape& shape) {
  // A process that only puts parts together has counts and names of features and labels.
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  const bool parts = runner != nullptr && sparse_engine::stays_in_parts(config);
  const int workers = host.compute.workers();
  const std::uint64_t own =
      parts ? kLeast + 40 * (std::uint64_t{shape.features} + shape.labels)
            : sparse_engine::memory_needed(
                  config, recipe, shape,
                  {.workers = workers,
                   .steps_elsewhere = runner != nullptr,
                   .prediction_bytes = sparse_engine::prediction_memory(config, recipe, shape, workers)});
  return runner == nullptr ? own : std::max(own, runner->memory_needed(config, recipe, shape));
}

Error too_little_memory(const run::NodeHost& host, const StepRunner* runner,
                        const sparse_engine::TrainConfig& config, const sparse_engine::DataShape& shape,
                        std::uint64_t needed) {
  const std::uint64_t limit = host.compute.memory_limit_bytes();
  const auto would_fit = [&](const sparse_engine::TrainConfig& smaller) {
    const auto recipe = sparse_engine::derive_recipe(smaller, shape);
    return recipe.ok() && run_memory(host, runner, smaller, *recipe, shape) <= limit;
  };
  sparse_engine::TrainConfig smaller = config;
  smaller.optimizer.moments = sparse_engine::MomentsKind::kBlock;
  std::string fits = would_fit(smaller) ? "optimizer.moments=block" : "";
  if (runner != nullptr && fits.empty()) {
    smaller = config;
    smaller.predict.instances = false;
    if (would_fit(smaller)) fits = "predict.instances=false";
  }
  for (std::uint32_t hidden = 2048; hidden >= 16 && fits.empty(); hidden /= 2) {
    if (hidden >= config.model.hidden.value_or(0)) continue;
    smaller = config;
    smaller.model.hidden = hidden;
    if (would_fit(smaller)) fits = fmt::format("model.hidden={}", hidden);
  }
  if (fits.empty()) fits = "fewer features (text.max_features) or labels";
  return {.kind = ErrorKind::kFailed,
          .where = "memory",
          .what = "the run would not fit",
          .got = fmt::format("{} needed for {} features and {} labels at model.hidden = {}",
                             human_bytes(needed), run::human_count(shape.features),
                             run::human_count(shape.labels), config.model.hidden.value_or(0)),
          .expected = fmt::format("at most {}, what this process may use", human_bytes(limit)),
          .fix = fmt::format("would fit: {}", fits)};
}

}  // namespace gossamer::commands
