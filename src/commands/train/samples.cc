// SPDX-License-Identifier: Apache-2.0
#include "commands/train/samples.h"

#include <fmt/format.h>

#include <utility>

#include "commands/records/record_formats.h"
#include "commands/records/vocabulary_file.h"
#include "commands/records/word_data.h"
#include "commands/train/record_samples.h"
#include "commands/train/word_samples.h"
#include "learn/data/cached_dataset.h"

namespace gossamer::commands {
namespace {

using Opened = Result<std::unique_ptr<Samples>>;

Opened open_words(const run::NodeHost& host, const sparse_engine::TrainConfig& config,
                  const std::string& path) {
  auto text = read_word_cache(host.disk, path);
  if (!text.ok()) return text.error();
  if (!text->has_value()) return Opened(nullptr);
  return Opened(std::make_unique<WordSamples>(host, **std::move(text), config));
}

}  // namespace

Opened open_samples(const run::NodeHost& host, const sparse_engine::TrainConfig& config,
                    const CachePlace& place) {
  using data::RecordFormat;
  if (config.data.format == RecordFormat::kText)
    return open_words(host, config,
                      fmt::format("{}/{}", place.directory, row_of(RecordFormat::kText).cached));
  const std::string path = place.records.empty() ? place.directory + "/train.cache" : place.records;
  const auto there = host.disk.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Opened(nullptr);
  auto featurizer = read_vocabulary(host.disk, place.directory + "/vocabulary.json");
  if (!featurizer.ok()) return featurizer.error();
  auto opened = data::CachedDataset::open(host.disk, path, host.compute);
  if (!opened.ok()) return opened.error();
  if (config.data.format == RecordFormat::kSessions)
    return Opened(std::make_unique<SessionSamples>(host, *std::move(opened), config.sessions));
  return Opened(std::make_unique<RecordSamples>(host, *std::move(opened), *std::move(featurizer)));
}

}  // namespace gossamer::commands
