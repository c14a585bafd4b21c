// SPDX-License-Identifier: Apache-2.0
//
// train(): the training loop of the sparse engine on one node. Takes the samples of each step, steps the
// learner, keeps checkpoints, and ends with a Model ready for prediction. Everything that shapes the result
// is in the config, the samples and the number of workers; clocks and hooks only watch.
//
// Thread rule: called by the thread that owns the Compute; hooks are called on it, between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "engines/sparse/checkpoint.h"
#include "engines/sparse/config.h"
#include "engines/sparse/recipe.h"
#include "engines/sparse/step_source.h"
#include "host/api/clock.h"
#include "host/api/compute.h"
#include "host/api/disk.h"
#include "kernels/kernels.h"
#include "learn/data/dataset.h"
#include "learn/sparse/hash_negatives.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/network.h"
#include "learn/sparse/schedule.h"

namespace gossamer::engine {

// After each step.
struct TrainProgress {
  std::uint64_t steps_done = 0;  // of the whole run, those before a resume included
  std::uint64_t steps_total = 0;
  std::uint64_t samples_done = 0;
  double epoch = 0;  // samples_done / samples of an epoch
  double loss = 0;   // mean over this step's samples, nats
  double learning_rate = 0;
  std::uint64_t active_rows = 0;
};

struct TrainHooks {
  FunctionRef<void(const TrainProgress&)> on_step;
  // Asked after each step; true ends the run with a checkpoint.
  FunctionRef<bool()> stop_requested;
  EventSink events;
};

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
  double load_seconds = 0;           // what came before train(), for RunCost
  // The output layer has at least so many shards, if it has rows enough (learn/sparse/row_order.h). The
  // network is the same for any number, to rounding. One costs nothing.
  std::size_t shards = 1;
};

struct TrainOutcome {
  // Without moments, output rows in the order of labels. Empty when stop_requested() ended the run before its
  // last step: a checkpoint holds all that was done.
  std::optional<sparse::Network> network;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double final_loss = 0;  // mean of the last 100 steps of the run
  // The step this process began with, and the cost of the run up to there, if it continued from a checkpoint.
  std::optional<StepNumber> resumed_at;
  RunCost cost_before;
  sparse::LearnerPhases phases;  // summed over this process's steps
  CheckpointCounters checkpoints;
};

// Continues from the newest whole checkpoint in the directory if there is one, else starts at step 0. One is
// written after the last step too, unless checkpoints are switched off; that it fails costs only time.
[[nodiscard]] Result<TrainOutcome> train(const TrainInputs& inputs, const TrainHooks& hooks);

// The tensors of a checkpoint, with moments unless they were dropped (docs/protocols/checkpoint.md).
[[nodiscard]] std::vector<NamedTensor> checkpoint_tensors(sparse::Network& network);
// And those of hash tables, which a run that has some keeps too.
[[nodiscard]] std::vector<NamedTensor> checkpoint_tensors(
    sparse::Network& network, std::optional<sparse::HashNegatives::State>& tables);
// The hash tables of a run over the output rows of `network`, not built yet; nothing if it has none.
[[nodiscard]] std::unique_ptr<sparse::HashNegatives> hash_tables(const TrainInputs& inputs,
                                                                 const sparse::Network& network);
// Of everything that shapes the trained network, but for the order of its rows.
[[nodiscard]] std::string run_fingerprint(const TrainConfig& config, const Recipe& recipe,
                                          const data::Schema& schema);
// With that order: of checkpoints of one process.
[[nodiscard]] std::string fingerprint_of(const TrainInputs& inputs);

// The checkpoint that train() writes after the last step, of a network that others have trained: `trained`
// has no moments, and output rows in the order of labels. Requires inputs.shards == 1.
[[nodiscard]] Result<void> save_trained_checkpoint(const TrainInputs& inputs, CheckpointInfo info,
                                                   sparse::Network& trained);

[[nodiscard]] kernels::Activation activation_of(ActivationKind kind);
// How config and recipe set up a run; `bench sparse-step` measures the same learner.
[[nodiscard]] sparse::Schedule schedule_of(const TrainConfig& config, const Recipe& recipe);
[[nodiscard]] sparse::NetworkInit network_init(const TrainConfig& config);
[[nodiscard]] sparse::LearnerOptions learner_options(const TrainConfig& config, const Recipe& recipe);

}  // namespace gossamer::engine
