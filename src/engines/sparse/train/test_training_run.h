// SPDX-License-Identifier: Apache-2.0
//
// Short training runs on a simulated disk, for the tests of the training loop. Not part of the product.
//
// Thread rule: one owner.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "base/rng.h"
#include "engines/run/train_hooks.h"
#include "engines/sparse/train/batch_reader.h"
#include "engines/sparse/train/trainer.h"
#include "host/sim/clock.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "learn/data/in_memory_dataset.h"

namespace gossamer::sparse_engine::testing {

inline constexpr char kDirectory[] = "run/checkpoints";

// Records whose labels follow from their features, so that there is something to learn. Label l goes with the
// features 3l, 3l+1 and 3l+2, beside one of noise.
inline std::unique_ptr<data::InMemoryDataset> learnable(std::uint32_t labels, std::size_t records) {
  const std::uint32_t features = 3 * labels + 10;
  auto set = std::make_unique<data::InMemoryDataset>(
      data::InMemoryDataset::Shape{.features = features, .labels = labels});
  Rng rng(5, Purpose::kTest);
  for (std::size_t i = 0; i < records; ++i) {
    const auto label = static_cast<std::uint32_t>(rng.below(labels));
    const auto noise = 3 * labels + static_cast<std::uint32_t>(rng.below(10));
    set->add({3 * label, 3 * label + 1 + static_cast<std::uint32_t>(rng.below(2)), noise}, {1, 2, 1},
             {label});
  }
  return set;
}

inline TrainConfig tiny_config() {
  TrainConfig config;
  config.model.hidden = 16;
  config.train.batch = 16;
  config.train.steps = 12;
  config.train.warmup_steps = 3;
  config.checkpoint.every_steps = 4;
  config.checkpoint.every_minutes = 0;
  return config;
}

// The objects of a test run, made anew so that runs share nothing but the disk.
struct TestRun {
  explicit TestRun(int workers = 2, TrainConfig c = tiny_config(), std::size_t records = 100,
                   std::uint32_t labels = 8)
      : config(std::move(c)), dataset(learnable(labels, records)), compute({.workers = workers, .seed = 3}) {
    weighting.l2 = true;
    recipe = *derive_recipe(config, shape_of(*dataset));
  }

  // The run stops if `on_step(steps_done)` returns true.
  Result<TrainOutcome> train(host::Disk& disk, FunctionRef<bool(std::uint64_t)> on_step) {
    std::uint64_t done = 0;
    const auto watch = [&](const engine::TrainProgress& progress) {
      done = progress.steps_done;
      losses.push_back(progress.loss);
      told.push_back(progress);
    };
    const auto stop = [&] { return on_step(done); };
    const auto note = [&](std::string_view event, EventFields fields) {
      events.emplace_back(event);
      if (event == "checkpoint_written") saved.push_back(std::get<std::uint64_t>(fields.begin()->value));
    };
    const sparse::LabelCounts labels = sparse::count_labels(*dataset);
    RecordSteps steps(
        BatchReader(*dataset, weighting, compute), dataset->size(),
        {.seed = config.seed, .batch = config.train.batch, .dropout = config.train.input_dropout});
    return sparse_engine::train({.disk = disk,
                                 .compute = compute,
                                 .clock = clock,
                                 .kernels = kernels::kernels_for(kernels::best_isa()),
                                 .schema = *dataset,
                                 .labels = labels,
                                 .steps = steps,
                                 .config = config,
                                 .recipe = recipe,
                                 .run_id = "test",
                                 .checkpoint_directory = kDirectory,
                                 .load_seconds = load_seconds,
                                 .shards = shards},
                                {.on_step = watch, .stop_requested = stop, .events = note});
  }
  Result<TrainOutcome> train_to_end(host::Disk& disk) {
    return train(disk, [](std::uint64_t) { return false; });
  }

  TrainConfig config;
  std::unique_ptr<data::InMemoryDataset> dataset;
  host::SimCompute compute;
  host::SimClock clock;
  text::FeatureWeighting weighting;
  Recipe recipe;
  double load_seconds = 0;
  std::size_t shards = 1;
  std::vector<double> losses;
  std::vector<engine::TrainProgress> told;
  std::vector<std::string> events;
  std::vector<std::uint64_t> saved;  // the steps of the checkpoints that were written
};

inline std::unique_ptr<host::SimDisk> fresh_disk() {
  auto disk = std::make_unique<host::SimDisk>();
  EXPECT_TRUE(disk->make_directories(kDirectory).ok());
  EXPECT_TRUE(disk->sync_directory("run").ok());
  EXPECT_TRUE(disk->sync_directory("/").ok());
  return disk;
}

inline std::vector<float> weights_of(const Result<TrainOutcome>& outcome) {
  EXPECT_TRUE(outcome.ok()) << outcome.error().message();
  EXPECT_TRUE(outcome->network.has_value());
  const sparse::Network& network = *outcome->network;
  std::vector<float> all(network.embedding.all_weights().begin(), network.embedding.all_weights().end());
  all.insert(all.end(), network.output.all_weights().begin(), network.output.all_weights().end());
  all.insert(all.end(), network.bias.span().begin(), network.bias.span().end());
  for (const sparse::DenseLayer& layer : network.dense) {
    all.insert(all.end(), layer.weights.all_weights().begin(), layer.weights.all_weights().end());
    all.insert(all.end(), layer.bias.span().begin(), layer.bias.span().end());
  }
  return all;
}

}  // namespace gossamer::sparse_engine::testing
