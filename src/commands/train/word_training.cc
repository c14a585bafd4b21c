// SPDX-License-Identifier: Apache-2.0
#include "commands/train/word_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace gossamer::commands {

data::LineShape word_line_shape(const sparse_engine::Word2vecConfig& config) {
  return {.last = 2 * config.window, .decay = 1, .scale = data::LineScale::kSum};
}

WordTraining::WordTraining(data::TokenText text, const sparse_engine::TrainConfig& config,
                           host::Compute& compute)
    : text_(std::move(text)),
      config_(config.word2vec),
      windows_(text_,
               {.mode = config.word2vec.mode,
                .window = config.word2vec.window,
                .shrink = config.word2vec.shrink,
                .sample = config.word2vec.sample,
                .batch = config.train.batch,
                .seed = config.seed},
               compute),
      steps_(windows_),
      schema_(*this),
      labels_{.count = windows_.label_count(), .records = windows_.samples_per_epoch()} {}

std::uint64_t WordTraining::words() const {
  return std::accumulate(text_.count.begin(), text_.count.end(), std::uint64_t{0});
}

std::vector<std::uint32_t> WordTraining::word_counts() const {
  std::vector<std::uint32_t> counts;
  counts.reserve(text_.count.size());
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint64_t count : text_.count) {
    counts.push_back(static_cast<std::uint32_t>(std::min(count, kMost)));
  }
  return counts;
}

void WordTraining::restore_frequencies(sparse::Network& network) const {
  for (std::uint32_t word = 0; word < text_.words.size(); ++word) {
    network.bias[word] -= static_cast<float>(std::log(windows_.keep(word)));
  }
}

std::uint64_t WordTraining::around() const {
  return windows_.samples_per_epoch() * (config_.shrink ? config_.window + 1 : 2 * config_.window);
}

std::uint64_t WordTraining::Schema::feature_entries() const {
  return owner_.config_.mode == data::WindowMode::kCbow ? owner_.around() : size();
}

std::uint64_t WordTraining::Schema::label_entries() const {
  return owner_.config_.mode == data::WindowMode::kCbow ? size() : owner_.around();
}

}  // namespace gossamer::commands
