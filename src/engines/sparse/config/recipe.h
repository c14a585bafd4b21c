// SPDX-License-Identifier: Apache-2.0
//
// Recipe: the values that a config leaves to the program (`auto`), derived from the data, each with its
// reason. The rules were chosen on validation data only; docs/benchmarks.md has the commands and figures.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/negatives_plan.h"
#include "learn/data/dataset.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

struct Recipe {
  std::uint32_t hidden = 0;
  std::vector<std::uint32_t> dense = {};  // widths of the hidden layers after the first
  double dropout = 0;
  std::uint64_t steps = 0;               // optimizer updates of the whole run
  std::uint64_t held_out = 0;            // about so many records are held out (learn/data/hold_out.h)
  std::optional<TablePlan> tables = {};  // for a run that finds negatives by hash tables
  // One line for each derived value: "train.epochs = 12: 23350 records".
  std::vector<std::string> reasons = {};
};

// The sizes from which a recipe is derived.
struct DataShape {
  std::uint64_t records = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  std::uint64_t feature_entries = 0;
  std::uint64_t label_entries = 0;
};
[[nodiscard]] DataShape shape_of(const data::Schema& schema);

// The network that a recipe trains.
[[nodiscard]] sparse::NetworkShape network_shape(const Recipe& recipe, std::uint32_t features,
                                                 std::uint32_t labels);
// The moments of the tables for a value of optimizer.moments.
[[nodiscard]] sparse::TableMoments table_moments(MomentsKind kind);
// The number of weights and biases of a network.
[[nodiscard]] std::uint64_t parameter_count(const sparse::NetworkShape& shape);

// The error is kBadData when the data can train nothing: no records, no features or no label at all.
[[nodiscard]] Result<Recipe> derive_recipe(const TrainConfig& config, const DataShape& shape);

// About how many output rows are active in a step, or at most how many if there are few. They are its
// positives, each counted once for each record that has it, and sampled negatives.
[[nodiscard]] std::uint64_t active_rows(const TrainConfig& config, const DataShape& shape);

// The process that trains.
struct RunProcess {
  int workers = 1;
  // Other processes do the steps. This one has what they have trained, without moments, and makes the model.
  bool steps_elsewhere = false;
  std::uint64_t prediction_bytes = 0;  // beside the model (predict/prediction_memory.h)
};

// Peak bytes of a run in `process`: weights, and the larger one of
// - moments and buffers of the steps
// - the instances kept for prediction, with the memory of the evaluation on a test set
//
// It is an upper bound where only the data can tell. Mapped records do not count: the system reads them again
// when it needs their memory.
[[nodiscard]] std::uint64_t memory_needed(const TrainConfig& config, const Recipe& recipe,
                                          const DataShape& shape, const RunProcess& process);

// Bytes on disk, a few kB of headers rounded up. They are those of one checkpoint, of the checkpoint after
// the last step, and of the model directory (docs/protocols). Parts are what nodes deliver, and the run keeps
// until it is finished.
struct DiskNeeded {
  std::uint64_t checkpoint = 0;
  std::uint64_t last_checkpoint = 0;
  std::uint64_t model = 0;
  std::uint64_t parts = 0;  // 0: one process trains
};
[[nodiscard]] DiskNeeded disk_needed(const TrainConfig& config, const Recipe& recipe,
                                     const data::Schema& schema);

}  // namespace gossamer::sparse_engine
