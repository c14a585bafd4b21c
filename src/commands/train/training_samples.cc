// SPDX-License-Identifier: Apache-2.0
#include "commands/train/training_samples.h"

#include <utility>

#include "commands/records/vocabulary_file.h"
#include "commands/records/weighting_choice.h"
#include "commands/records/word_data.h"

namespace gossamer::commands {

Result<std::optional<TrainingData>> open_cache(const run::NodeHost& host,
                                               const sparse_engine::TrainConfig& config,
                                               const CachePlace& place) {
  TrainingData data;
  if (config.data.format == sparse_engine::DataFormat::kText) {
    auto text = read_word_cache(host.disk, place.directory + "/train.words");
    if (!text.ok()) return text.error();
    if (!text->has_value()) return std::optional<TrainingData>();
    data.words = std::make_unique<WordTraining>(**std::move(text), config, host.compute);
    return std::optional(std::move(data));
  }
  const std::string path = place.records.empty() ? place.directory + "/train.cache" : place.records;
  const auto there = host.disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return std::optional<TrainingData>();
  auto featurizer = read_vocabulary(host.disk, place.directory + "/vocabulary.json");
  if (!featurizer.ok()) return featurizer.error();
  data.featurizer = *std::move(featurizer);
  auto opened = data::CachedDataset::open(host.disk, path, host.compute);
  if (!opened.ok()) return opened.error();
  data.records = *std::move(opened);
  return std::optional(std::move(data));
}

text::FittedWeighting weigh(const TrainingData& data, const sparse_engine::TrainConfig& config) {
  if (data.words != nullptr) return {.weighting = {.l2 = false}, .reason = {}};
  return choose_weighting(config.data.weighting, *data.records, data.featurizer);
}

TrainingSamples::TrainingSamples(const TrainingData& data, const text::FeatureWeighting& weighting,
                                 const sparse_engine::TrainConfig& config,
                                 const sparse_engine::Recipe& recipe, host::Compute& compute)
    : data_(data) {
  if (data.words != nullptr) {
    labels_ = data.words->labels();
    return;
  }
  hold_out_.emplace(data.records->size(), recipe.held_out);
  kept_.emplace(*data.records, *hold_out_);
  steps_.emplace(
      sparse_engine::BatchReader(*kept_, weighting, compute), kept_->size(),
      sparse_engine::RecordSteps::Options{
          .seed = config.seed, .batch = config.train.batch, .dropout = config.train.input_dropout});
  labels_ = sparse::count_labels(*kept_);
}

}  // namespace gossamer::commands
