// SPDX-License-Identifier: Apache-2.0
#include "commands/train/word_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "engines/sparse/train/model_assembly.h"
#include "learn/data/line_bag.h"
#include "run/progress.h"

namespace gossamer::commands {
namespace {

// The shape of a query, which is a line of words. It becomes the mean of the last 2 * window words, as
// training saw the words of a window.
data::LineShape line_shape(const sparse_engine::Word2vecConfig& config) {
  return {.last = 2 * config.window, .decay = 1, .scale = data::LineScale::kSum};
}

// How often each word stands in the text.
std::vector<std::uint32_t> word_counts(const data::TokenText& text) {
  std::vector<std::uint32_t> counts;
  counts.reserve(text.count.size());
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint64_t count : text.count)
    counts.push_back(static_cast<std::uint32_t>(std::min(count, kMost)));
  return counts;
}

}  // namespace

WordSamples::WordSamples(const run::NodeHost& host, data::TokenText text,
                         const sparse_engine::TrainConfig& config)
    : host_(host),
      text_(std::move(text)),
      config_(config.word2vec),
      windows_(text_,
               {.mode = config.word2vec.mode,
                .window = config.word2vec.window,
                .shrink = config.word2vec.shrink,
                .sample = config.word2vec.sample,
                .batch = config.train.batch,
                .seed = config.seed},
               host.compute),
      steps_(windows_),
      schema_(*this),
      labels_{.count = windows_.label_count(), .records = windows_.samples_per_epoch()} {}

std::string WordSamples::describe() const {
  return fmt::format("{} words of text, {} different; {} samples an epoch", run::human_count(words()),
                     run::human_count(schema_.labels()), run::human_count(schema_.size()));
}

std::uint64_t WordSamples::checksum() const {
  Digest digest;
  const auto add = [&digest](const auto& values) { digest.add(std::as_bytes(std::span(values))); };
  add(text_.token);
  for (const std::string& word : text_.words) {
    add(std::array{word.size()});
    add(word);
  }
  return digest.value();
}

text::FittedWeighting WordSamples::weigh(const sparse_engine::TrainConfig& /*config*/) const {
  return {.weighting = {.l2 = false}, .reason = {}};
}

sparse_engine::Model WordSamples::model_of(sparse::Network network) const {
  restore_frequencies(network);
  return sparse_engine::assemble_model({.network = std::move(network),
                                        .schema = schema_,
                                        .label_count = word_counts(text_),
                                        .training_rows = words(),
                                        .weighting = plan_->weighting,
                                        .featurizer = {},
                                        .task = "word2vec",
                                        .line = line_shape(config_),
                                        .config = plan_->config},
                                       host_.kernels, host_.compute);
}

void WordSamples::restore_frequencies(sparse::Network& network) const {
  for (std::uint32_t word = 0; word < text_.words.size(); ++word) {
    network.bias[word] -= static_cast<float>(std::log(windows_.keep(word)));
  }
}

std::uint64_t WordSamples::words() const {
  return std::accumulate(text_.count.begin(), text_.count.end(), std::uint64_t{0});
}

std::uint64_t WordSamples::around() const {
  return windows_.samples_per_epoch() * (config_.shrink ? config_.window + 1 : 2 * config_.window);
}

std::uint64_t WordSamples::Schema::feature_entries() const {
  return owner_.config_.mode == data::WindowMode::kCbow ? owner_.around() : size();
}

std::uint64_t WordSamples::Schema::label_entries() const {
  return owner_.config_.mode == data::WindowMode::kCbow ? size() : owner_.around();
}

}  // namespace gossamer::commands
