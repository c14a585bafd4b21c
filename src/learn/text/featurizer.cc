// SPDX-License-Identifier: Apache-2.0
#include "learn/text/featurizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "learn/text/word_parts.h"

namespace gossamer::text {
namespace {

constexpr std::uint32_t kMaxSubword = 16;
// Marks a feature whose parts are not derived: a part of a word, or a word that is yet to come.
constexpr std::uint32_t kNotDerived = 0xFFFFFFFFU;

void check(const FeaturizerOptions& options) {
  CHECK(in_range(options), options.subword_min, options.subword_max, options.max_features);
}

// The largest weight that a count is made from: the count of a larger one would not fit a float. A text of
// thousands of words beside a context of a single common word would come to that.
constexpr float kMaxWeight = 80;

// log_count(): the weight that log counts make of a count. count_of(): the count that they make a weight of.
float log_count(float count) { return count > 1 ? 1 + std::log(count) : count; }
float count_of(float weight) { return weight > 1 ? std::exp(std::min(weight, kMaxWeight) - 1) : weight; }

// Adds the text's row to the context's row in `scratch`, after multiplying the context's weights by `scale`.
void merge(data::SparseRow text, float scale, FeaturizerScratch& scratch) {
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::size_t t = 0;
  const auto take_text_before = [&](std::uint64_t end) {
    for (; t < text.index.size() && text.index[t] < end; ++t) {
      index.push_back(text.index[t]);
      value.push_back(text.value[t]);
    }
  };
  for (std::size_t c = 0; c < scratch.index.size(); ++c) {
    take_text_before(scratch.index[c]);
    float weight = scale * log_count(scratch.value[c]);
    if (t < text.index.size() && text.index[t] == scratch.index[c]) weight += log_count(text.value[t++]);
    index.push_back(scratch.index[c]);
    value.push_back(count_of(weight));
  }
  take_text_before(UINT64_MAX);
  scratch.index = std::move(index);
  scratch.value = std::move(value);
}

}  // namespace

bool in_range(const FeaturizerOptions& options) {
  return options.subword_min <= options.subword_max && options.subword_max <= kMaxSubword &&
         options.max_features > 0 && options.max_features < StringIndex::kNone;
}

// The longest part is the stem of a word that loses nothing: the word and '+'.
bool can_be_feature(std::string_view name) {
  return name.size() <= kMaxWordBytes + (word_part(name) == WordPart::kWord ? 0 : 1);
}

FeatureCounter::FeatureCounter(FeaturizerOptions options) : options_(options) { check(options); }

Result<void> FeatureCounter::add(std::string_view text) {
  ++documents_;
  return splitter_.split(text, [this](std::string_view word) { add_word(word); });
}

void FeatureCounter::reserve(std::uint32_t id) {
  if (id < document_frequency_.size()) return;
  document_frequency_.resize(id + 1);
  last_document_.resize(id + 1);
  parts_begin_.resize(id + 1);
  parts_count_.resize(id + 1, kNotDerived);
}

void FeatureCounter::merge(const FeatureCounter& other) {
  for (std::uint32_t theirs = 0; theirs < other.document_frequency_.size(); ++theirs) {
    const std::uint32_t id = index_.add(other.index_.string(theirs));
    reserve(id);
    document_frequency_[id] += other.document_frequency_[theirs];
  }
  documents_ += other.documents_;
}

void FeatureCounter::count(std::uint32_t id) {
  reserve(id);
  if (last_document_[id] == documents_) return;
  last_document_[id] = documents_;
  ++document_frequency_[id];
}

void FeatureCounter::add_word(std::string_view word) {
  const std::uint32_t id = index_.add(word);
  count(id);
  if (parts_count_[id] == kNotDerived) {
    parts_begin_[id] = parts_.size();
    word_parts(word, options_, [this](std::string_view part) { parts_.push_back(index_.add(part)); });
    parts_count_[id] = static_cast<std::uint32_t>(parts_.size() - parts_begin_[id]);
  }
  for (std::uint32_t i = 0; i < parts_count_[id]; ++i) count(parts_[parts_begin_[id] + i]);
}

FeaturizerState FeatureCounter::finish() const {
  std::vector<std::uint32_t> order(document_frequency_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::erase_if(order, [this](std::uint32_t id) {
    return document_frequency_[id] < std::max(options_.min_document_frequency, 1U);
  });
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::make_tuple(document_frequency_[b], index_.string(a)) <
           std::make_tuple(document_frequency_[a], index_.string(b));
  });
  if (order.size() > options_.max_features) order.resize(options_.max_features);
  FeaturizerState state{.options = options_, .documents = documents_};
  state.features.reserve(order.size());
  state.document_frequency.reserve(order.size());
  for (const std::uint32_t id : order) {
    state.features.emplace_back(index_.string(id));
    state.document_frequency.push_back(document_frequency_[id]);
  }
  return state;
}

Featurizer::Featurizer(FeaturizerState state) : state_(std::move(state)) {
  check(state_.options);
  CHECK(state_.features.size() == state_.document_frequency.size(), state_.features.size(),
        state_.document_frequency.size());
  for (const std::string& feature : state_.features) index_.add(feature);
  CHECK(index_.size() == state_.features.size(), index_.size(), state_.features.size());
  parts_begin_.reserve(state_.features.size() + 1);
  parts_begin_.push_back(0);
  for (const std::string& feature : state_.features) {
    if (word_part(feature) == WordPart::kWord) {
      word_parts(feature, state_.options, [this](std::string_view part) {
        if (const std::uint32_t id = index_.find(part); id != StringIndex::kNone) parts_.push_back(id);
      });
    }
    parts_begin_.push_back(parts_.size());
  }
  weighting_ = featurizer_weighting(state_);
  weighting_.l2 = false;
}

void Featurizer::find_word(std::string_view word, std::vector<std::uint32_t>& found) const {
  if (const std::uint32_t id = index_.find(word); id != StringIndex::kNone) {
    found.push_back(id);
    const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(parts_begin_[id]);
    found.insert(found.end(), first, parts_.begin() + static_cast<std::ptrdiff_t>(parts_begin_[id + 1]));
    return;
  }
  word_parts(word, state_.options, [this, &found](std::string_view part) {
    if (const std::uint32_t id = index_.find(part); id != StringIndex::kNone) found.push_back(id);
  });
}

Result<data::SparseRow> Featurizer::features(std::string_view text, FeaturizerScratch& scratch) const {
  scratch.found.clear();
  scratch.words = 0;
  scratch.unknown_words = 0;
  const Result<void> split = scratch.splitter.split(text, [this, &scratch](std::string_view word) {
    const std::size_t before = scratch.found.size();
    find_word(word, scratch.found);
    ++scratch.words;
    if (scratch.found.size() == before) ++scratch.unknown_words;
  });
  if (!split.ok()) return split.error();
  std::sort(scratch.found.begin(), scratch.found.end());
  scratch.index.clear();
  scratch.value.clear();
  for (const std::uint32_t id : scratch.found) {
    if (scratch.index.empty() || scratch.index.back() != id) {
      scratch.index.push_back(id);
      scratch.value.push_back(0);
    }
    ++scratch.value.back();
  }
  return data::SparseRow{.index = scratch.index, .value = scratch.value};
}

float Featurizer::length(data::SparseRow row) const {
  double squares = 0;
  for (std::size_t i = 0; i < row.index.size(); ++i) {
    float value = row.value[i];
    weighting_.apply({.index = row.index.subspan(i, 1), .value = std::span(&value, 1)}, std::span(&value, 1));
    squares += static_cast<double>(value) * value;
  }
  return static_cast<float>(std::sqrt(squares));
}

Result<data::SparseRow> Featurizer::features(std::string_view text, std::string_view context,
                                             float context_weight, FeaturizerScratch& scratch) const {
  Result<data::SparseRow> own = features(text, scratch);
  if (!own.ok() || context.empty() || context_weight == 0) return own;
  const float own_length = length(*own);
  const std::vector<std::uint32_t> index(own->index.begin(), own->index.end());
  const std::vector<float> value(own->value.begin(), own->value.end());
  Result<data::SparseRow> more = features(context, scratch);
  if (!more.ok()) return more;
  const float more_length = length(*more);
  if (own_length == 0 || more_length == 0) {
    scratch.index = index;
    scratch.value = value;
  } else {
    merge({.index = index, .value = value}, context_weight * own_length / more_length, scratch);
  }
  return data::SparseRow{.index = scratch.index, .value = scratch.value};
}

FeatureWeighting featurizer_weighting(const FeaturizerState& state) {
  FeatureWeighting weighting{.counts = CountScale::kLog, .l2 = true};
  weighting.idf.reserve(state.features.size());
  for (std::size_t i = 0; i < state.features.size(); ++i) {
    const double idf = std::log(static_cast<double>(state.documents) / state.document_frequency[i]);
    const WordPart kind = word_part(state.features[i]);
    const float factor = kind == WordPart::kStem      ? state.options.stem_weight
                         : kind == WordPart::kSubword ? state.options.subword_weight
                                                      : 1.0F;
    weighting.idf.push_back(static_cast<float>(idf) * factor);
  }
  return weighting;
}

}  // namespace gossamer::text
