// SPDX-License-Identifier: Apache-2.0
//
// Text to features. The features of a text are its words (words.h) and, per word,
//   - its stem: the word without a common English ending, so that "digs" and "digging" meet (word_parts.h);
//   - its sub-words: the runs of subword_min..subword_max code points of "<word>". '<' and '>' mark its ends
//     (Bojanowski et al., "Enriching word vectors with subword information", TACL 2017, section 3.2).
// Values are counts; FeatureWeighting (weighting.h) does the rest.
//
// A FeatureCounter makes a vocabulary in one pass over the documents. It takes features in at least
// min_document_frequency documents, at most max_features of them. Ids run by falling document frequency, then
// by name, so they depend on the documents alone, not on their order. Nothing is left out for being common:
// idf does that.
//
//   FeatureCounter counter(options);
//   for (text : documents) counter.add(text);
//   Featurizer featurizer(counter.finish());
//   FeaturizerScratch scratch;
//   data::SparseRow row = *featurizer.features("the meat of a deer", scratch);
//
// Errors: kBadData without `where` for text that is no UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "learn/data/rows.h"
#include "learn/text/string_index.h"
#include "learn/text/weighting.h"
#include "learn/text/words.h"

namespace gossamer::text {

struct FeaturizerOptions {
  bool stems = true;
  std::uint32_t subword_min = 0;  // code points, the marks counted; 0: no sub-words
  std::uint32_t subword_max = 0;  // at least subword_min, at most 16
  std::uint32_t min_document_frequency = 2;
  std::uint32_t max_features = 1'000'000;  // at least 1, below StringIndex::kNone
  // The factors of featurizer_weighting() for stems and sub-words. There are several per word, and all of
  // them say the same as the word, only less exactly.
  float stem_weight = 0.7F;
  float subword_weight = 0.3F;

  bool operator==(const FeaturizerOptions&) const = default;
};

// Whether numbers are within the ranges above. A file may hold any other.
[[nodiscard]] bool in_range(const FeaturizerOptions& options);

// Whether a name is short enough for a word or for a part of one.
[[nodiscard]] bool can_be_feature(std::string_view name);

// Everything a Featurizer is, as plain data; the model file keeps it.
struct FeaturizerState {
  FeaturizerOptions options = {};
  std::vector<std::string> features = {};              // by id, distinct
  std::vector<std::uint32_t> document_frequency = {};  // by id, 1..documents
  std::uint64_t documents = 0;
};

// Thread rule: one owner.
class FeatureCounter {
 public:
  // Requires options within the ranges above.
  explicit FeatureCounter(FeaturizerOptions options);

  [[nodiscard]] Result<void> add(std::string_view text);
  // Adds the documents that another counter has seen; its options must be the same. What finish() gives
  // depends on the documents alone, not on which counter has seen which.
  void merge(const FeatureCounter& other);
  [[nodiscard]] FeaturizerState finish() const;

 private:
  void reserve(std::uint32_t id);
  void add_word(std::string_view word);
  void count(std::uint32_t id);

  FeaturizerOptions options_;
  WordSplitter splitter_;
  StringIndex index_;
  std::vector<std::uint32_t> document_frequency_;
  std::vector<std::uint64_t> last_document_;  // the last document that counted the feature, 1-based
  // Parts of each word seen, so that they are derived once: parts_count_[id] ids from
  // parts_[parts_begin_[id]].
  std::vector<std::uint64_t> parts_begin_;
  std::vector<std::uint32_t> parts_count_;
  std::vector<std::uint32_t> parts_;
  std::uint64_t documents_ = 0;
};

// Memory that features() uses again; one per thread.
struct FeaturizerScratch {
  WordSplitter splitter = {};
  std::vector<std::uint32_t> found = {};
  std::vector<std::uint32_t> index = {};
  std::vector<float> value = {};
  std::uint64_t words = 0;          // of the last text
  std::uint64_t unknown_words = 0;  // of them, words without a known feature
};

// Thread rule: immutable, any thread, each with its own scratch.
class Featurizer {
 public:
  // Requires distinct features that can be some, and as many document frequencies (a loaded state: checked by
  // its reader).
  explicit Featurizer(FeaturizerState state);

  // The known features of a text with their counts; empty for a text without any. Views into `scratch`.
  [[nodiscard]] Result<data::SparseRow> features(std::string_view text, FeaturizerScratch& scratch) const;

  // The features of a text together with its context. The context's counts are scaled: its weighted features
  // (see featurizer_weighting) are `context_weight` times as long as the text's, whatever the lengths of the
  // two. No feature comes to more than about 2 * 10^34 counts. A text without known features has none with a
  // context either. Requires context_weight >= 0.
  [[nodiscard]] Result<data::SparseRow> features(std::string_view text, std::string_view context,
                                                 float context_weight, FeaturizerScratch& scratch) const;

  [[nodiscard]] std::uint32_t size() const { return index_.size(); }
  [[nodiscard]] const FeaturizerState& state() const { return state_; }

 private:
  void find_word(std::string_view word, std::vector<std::uint32_t>& found) const;
  // Euclidean length of the row as weighted for learning.
  [[nodiscard]] float length(data::SparseRow row) const;

  FeaturizerState state_;
  StringIndex index_;
  // Known parts of known words, CSR by feature id.
  std::vector<std::uint64_t> parts_begin_;
  std::vector<std::uint32_t> parts_;
  FeatureWeighting weighting_;  // of the state, not scaled to length 1
};

// The weighting of a featurizer's rows: log counts, idf of the documents counted, times stem_weight or
// subword_weight, and L2.
[[nodiscard]] FeatureWeighting featurizer_weighting(const FeaturizerState& state);

}  // namespace gossamer::text
