// SPDX-License-Identifier: Apache-2.0
#include "learn/text/text_batch.h"

#include "base/check.h"
#include "learn/text/words.h"

namespace gossamer::text {
namespace {

// Some milliseconds of work for each worker, beside which waking them costs nothing.
constexpr std::size_t kRecordsPerWorker = 1024;
constexpr std::size_t kBytesPerWorker = std::size_t{1} << 20;

Result<void> check_utf8(std::string_view text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) return {};
  return WordSplitter().normalise(text).error();
}

}  // namespace

std::string_view TextBatch::text(std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : context_end_[i - 1];
  return std::string_view(bytes_).substr(begin, text_end_[i] - begin);
}

std::string_view TextBatch::context(std::size_t i) const {
  return std::string_view(bytes_).substr(text_end_[i], context_end_[i] - text_end_[i]);
}

std::span<const std::uint32_t> TextBatch::labels(std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : label_end_[i - 1];
  return std::span(labels_).subspan(begin, label_end_[i] - begin);
}

Result<void> TextBatch::add(std::string_view text, std::string_view context,
                            std::span<const std::uint32_t> labels) {
  // An error that is found here is the error of this record, and not of the batch.
  if (auto valid = check_utf8(text); !valid.ok()) return valid;
  if (auto valid = check_utf8(context); !valid.ok()) return valid;
  bytes_ += text;
  text_end_.push_back(bytes_.size());
  bytes_ += context;
  context_end_.push_back(bytes_.size());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  label_end_.push_back(labels_.size());
  return {};
}

bool TextBatch::full() const {
  return size() >= kRecordsPerWorker * workers_.size() || bytes_.size() >= kBytesPerWorker * workers_.size();
}

void TextBatch::clear() {
  bytes_.clear();
  text_end_.clear();
  context_end_.clear();
  labels_.clear();
  label_end_.clear();
}

void TextBatch::count(std::span<FeatureCounter> counters) {
  CHECK(counters.size() == workers_.size(), counters.size(), workers_.size());
  compute_.run([&](int w) {
    const host::Range range = host::worker_range(size(), w, compute_.workers());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto counted = counters[static_cast<std::size_t>(w)].add(text(i));
      CHECK(counted.ok(), i);  // add() has looked
    }
  });
  clear();
}

Result<void> TextBatch::featurize(const Featurizer& featurizer, float context_weight,
                                  FunctionRef<Result<void>(const data::Record& record)> sink) {
  compute_.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    worker.begin.assign(1, 0);
    worker.index.clear();
    worker.value.clear();
    const host::Range range = host::worker_range(size(), w, compute_.workers());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      const auto row = featurizer.features(text(i), context(i), context_weight, worker.scratch);
      CHECK(row.ok(), i);
      if (!context(i).empty() && context_weight != 0) {  // the scratch has the words of the context
        worker.context_words.words += worker.scratch.words;
        worker.context_words.unknown += worker.scratch.unknown_words;
      }
      worker.index.insert(worker.index.end(), row->index.begin(), row->index.end());
      worker.value.insert(worker.value.end(), row->value.begin(), row->value.end());
      worker.begin.push_back(worker.index.size());
    }
  });
  std::size_t i = 0;
  Result<void> done;
  for (const Worker& worker : workers_) {
    for (std::size_t k = 0; k + 1 < worker.begin.size() && done.ok(); ++k, ++i) {
      const std::size_t begin = worker.begin[k];
      const std::size_t count = worker.begin[k + 1] - begin;
      done = sink({.features = {std::span(worker.index).subspan(begin, count),
                                std::span(worker.value).subspan(begin, count)},
                   .labels = labels(i)});
    }
  }
  clear();
  return done;
}

ContextWords TextBatch::context_words() const {
  ContextWords all;
  for (const Worker& worker : workers_) {
    all.words += worker.context_words.words;
    all.unknown += worker.context_words.unknown;
  }
  return all;
}

}  // namespace gossamer::text
