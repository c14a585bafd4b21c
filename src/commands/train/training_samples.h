// SPDX-License-Identifier: Apache-2.0
//
// What a run trains on, once its data is imported: records or words from its cache, and the
// samples that training makes of them. They are the same wherever the cache is opened, so that
// several nodes can train one run.
//
//   auto data = open_cache(host, config, {.directory = DIR/cache});
//   const text::FittedWeighting fitted = weigh(**data, config);
//   TrainingSamples samples(**data, fitted.weighting, config, recipe, host.compute);
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "commands/train/word_training.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/train/batch_reader.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/compute.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/hold_out.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/text/featurizer.h"
#include "learn/text/weighting.h"
#include "run/node_host.h"

namespace gossamer::commands {

struct TrainingData {
  std::unique_ptr<data::CachedDataset> records;     // null: the data are words
  std::unique_ptr<WordTraining> words;              // null: the data are records
  std::optional<text::FeaturizerState> featurizer;  // for records of text

  [[nodiscard]] const data::Schema& schema() const {
    return words != nullptr ? words->schema() : static_cast<const data::Schema&>(*records);
  }
};

// Where imported data lies.
struct CachePlace {
  std::string directory;     // holds train.cache and, for text, vocabulary.json; or train.words
  std::string records = {};  // path in an imported directory, instead of train.cache
};
// Opens imported data. Nothing where nothing has been imported yet.
[[nodiscard]] Result<std::optional<TrainingData>> open_cache(const run::NodeHost& host,
                                                             const sparse_engine::TrainConfig& config,
                                                             const CachePlace& place);

// How features are weighted, and why.
[[nodiscard]] text::FittedWeighting weigh(const TrainingData& data, const sparse_engine::TrainConfig& config);

// The samples of each step, and how often each label occurs in them. Records that the
// recipe holds out are not among them.
class TrainingSamples {
 public:
  // Borrows data, weighting and compute for its life.
  TrainingSamples(const TrainingData& data, const text::FeatureWeighting& weighting,
                  const sparse_engine::TrainConfig& config, const sparse_engine::Recipe& recipe,
                  host::Compute& compute);
  TrainingSamples(const TrainingSamples&) = delete;
  TrainingSamples& operator=(const TrainingSamples&) = delete;

  [[nodiscard]] const data::Schema& schema() const {
    return data_.words != nullptr ? data_.words->schema() : static_cast<const data::Schema&>(*kept_);
  }
  [[nodiscard]] const sparse::LabelCounts& labels() const { return labels_; }
  [[nodiscard]] sparse_engine::StepSource& steps() {
    return data_.words != nullptr ? data_.words->steps() : static_cast<sparse_engine::StepSource&>(*steps_);
  }
  // Requires that the data are records.
  [[nodiscard]] const data::HoldOut& hold_out() const { return *hold_out_; }
  [[nodiscard]] const data::KeptRecords& kept() const { return *kept_; }

 private:
  const TrainingData& data_;
  std::optional<data::HoldOut> hold_out_;
  std::optional<data::KeptRecords> kept_;
  std::optional<sparse_engine::RecordSteps> steps_;
  sparse::LabelCounts labels_;
};

}  // namespace gossamer::commands
