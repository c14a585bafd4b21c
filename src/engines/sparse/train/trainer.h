// SPDX-License-Identifier: Apache-2.0
//
// train(): the training loop of the sparse engine on one node. It takes the samples of each step, steps the
// learner, keeps checkpoints, and ends with a network ready for a Model. Everything that shapes the result is
// in the config, the samples and the number of workers. Clocks and hooks only watch.
//
// Thread rule: called by the thread that owns the Compute; hooks are called on it, between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "engines/run/train_hooks.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/clock.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "kernels/kernels.h"
#include "learn/data/dataset.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives/hash_negatives.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/schedule.h"
#include "tensors/checkpoint.h"

namespace gossamer::sparse_engine {

struct TrainInputs {
  host::Disk& disk;
  host::Compute& compute;
  const host::Clock& clock;
  const kernels::Kernels& kernels;
  const data::Schema& schema;
  const sparse::LabelCounts& labels;
  StepSource& steps;
  const TrainConfig& config;
  const Recipe& recipe;
  std::string run_id;
  std::string checkpoint_directory;  // exists
  double load_seconds = 0;           // time before train(), for RunCost
  // The output layer has at least so many shards, if it has enough rows (learn/sparse/network/row_order.h).
  // The network is the same for any number, to rounding. One costs nothing.
  std::size_t shards = 1;
};

struct TrainOutcome {
  // Without moments, output rows in the order of labels. Empty when stop_requested() ended the run before its
  // last step: then a checkpoint holds all finished steps.
  std::optional<sparse::Network> network;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double final_loss = 0;  // mean of the last 100 steps of the run
  // If it continued from a checkpoint: the step this process began with, and the cost of the run up to there.
  std::optional<StepNumber> resumed_at;
  tensors::RunCost cost_before;
  sparse::LearnerPhases phases;  // summed over this process's steps
  tensors::CheckpointCounters checkpoints;
};

// Continues from the newest whole checkpoint in the directory if there is one, else starts at step 0. A
// checkpoint is also written after the last step, unless checkpoints are switched off. If that fails, it
// costs only time.
[[nodiscard]] Result<TrainOutcome> train(const TrainInputs& inputs, const engine::TrainHooks& hooks);

// The tensors of a checkpoint, with moments unless they were dropped (docs/protocols/checkpoint.md).
[[nodiscard]] std::vector<tensors::NamedTensor> checkpoint_tensors(sparse::Network& network);
// These tensors and those of hash tables, which a run with tables keeps, too.
[[nodiscard]] std::vector<tensors::NamedTensor> checkpoint_tensors(
    sparse::Network& network, std::optional<sparse::HashNegatives::State>& tables);
// The hash tables of a run over the output rows of `network`, not built yet; nothing if it has none.
[[nodiscard]] std::unique_ptr<sparse::HashNegatives> hash_tables(const TrainInputs& inputs,
                                                                 const sparse::Network& network);
// The fingerprint of everything that shapes the trained network, except the order of its rows.
[[nodiscard]] std::string run_fingerprint(const TrainConfig& config, const Recipe& recipe,
                                          const data::Schema& schema);
// The fingerprint with that order, for checkpoints of one process.
[[nodiscard]] std::string fingerprint_of(const TrainInputs& inputs);

// Saves the checkpoint that train() writes after the last step, for a network that others have trained.
// `trained` has no moments, and output rows in the order of labels. Requires inputs.shards == 1.
[[nodiscard]] Result<void> save_trained_checkpoint(const TrainInputs& inputs, tensors::CheckpointInfo info,
                                                   sparse::Network& trained);

// How config and recipe set up a run. `bench sparse-step` measures the same learner.
[[nodiscard]] sparse::Schedule schedule_of(const TrainConfig& config, const Recipe& recipe);
[[nodiscard]] sparse::NetworkInit network_init(const TrainConfig& config);
[[nodiscard]] sparse::LearnerOptions learner_options(const TrainConfig& config, const Recipe& recipe);

}  // namespace gossamer::sparse_engine
