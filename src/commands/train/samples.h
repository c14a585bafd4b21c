// SPDX-License-Identifier: Apache-2.0
//
// Samples: what a run trains on, once its data is imported, and the model of a network that was trained on
// it. They are the same wherever the cache is opened, so that several nodes can train one run.
//
//   auto samples = open_samples(host, config, {.directory = DIR/cache});
//   const text::FittedWeighting fitted = samples->weigh(config);
//   samples->begin({.config = config, .recipe = recipe, .weighting = fitted.weighting});
//   train on samples->steps()
//
// There are three kinds: records and sessions (record_samples.h), and the words of a text (word_samples.h).
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/records/feature_kind.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/config/recipe.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/train/step_source.h"
#include "learn/data/dataset.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"
#include "learn/text/weighting.h"
#include "run/node_host.h"

namespace gossamer::commands {

class Samples {
 public:
  Samples() = default;
  Samples(const Samples&) = delete;
  Samples& operator=(const Samples&) = delete;
  virtual ~Samples() = default;

  // All of the data.
  [[nodiscard]] virtual const data::Schema& schema() const = 0;
  // The form of the data. A test set has the same.
  [[nodiscard]] virtual FeatureKind features() const = 0;
  // One line for people.
  [[nodiscard]] virtual std::string describe() const = 0;
  // What schema().size() counts: "records".
  [[nodiscard]] virtual std::string_view counted() const = 0;
  // Tells the data from other data, with its order and all names. The same data has the same, wherever and
  // whenever it was imported.
  [[nodiscard]] virtual std::uint64_t checksum() const = 0;
  // What earlier builds kept for the same data.
  [[nodiscard]] virtual std::uint64_t former_checksum() const { return checksum(); }
  // Bytes of memory that each process needs for the data.
  [[nodiscard]] virtual std::uint64_t bytes() const { return 0; }
  // How features are weighted, and why.
  [[nodiscard]] virtual text::FittedWeighting weigh(const sparse_engine::TrainConfig& config) const = 0;

  // What the run has made of config and data. Borrowed for the life of the samples.
  struct Plan {
    const sparse_engine::TrainConfig& config;
    const sparse_engine::Recipe& recipe;
    const text::FeatureWeighting& weighting;
  };
  // Leaves out what the recipe holds out. Called once, before the functions below.
  virtual void begin(const Plan& plan) = 0;
  // What is left, how often each label occurs in it, and the samples of each step.
  [[nodiscard]] virtual const data::Schema& trained() const = 0;
  [[nodiscard]] virtual const sparse::LabelCounts& labels() const = 0;
  [[nodiscard]] virtual sparse_engine::StepSource& steps() = 0;

  // The model of a trained network. The network is untouched, and takes no memory, where only its shape
  // matters.
  [[nodiscard]] virtual sparse_engine::Model model_of(sparse::Network network) const = 0;
  // Learns from what was left out how likely answers are right, and the weights of the model's fusion. Adds
  // what was left out to the training rows of the model, if it has any.
  [[nodiscard]] virtual Result<void> complete(sparse_engine::Model& /*model*/) const { return {}; }
  // Only how likely answers of the net alone are right. `net` stands for a network that no memory holds.
  [[nodiscard]] virtual Result<void> calibrate(sparse_engine::Model& /*model*/,
                                               sparse_engine::Predictor& /*net*/) const {
    return {};
  }
};

// Where imported data lies.
struct CachePlace {
  std::string directory;     // holds train.cache and, for text, vocabulary.json; or train.words
  std::string records = {};  // path in an imported directory, instead of train.cache
};
// Opens imported data. Null where nothing has been imported yet. `host` outlives the samples.
[[nodiscard]] Result<std::unique_ptr<Samples>> open_samples(const run::NodeHost& host,
                                                            const sparse_engine::TrainConfig& config,
                                                            const CachePlace& place);

}  // namespace gossamer::commands
