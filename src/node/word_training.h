// SPDX-License-Identifier: Apache-2.0
//
// WordTraining: what a run of word2vec trains on, put together from the run's text: windows as steps, the
// schema with the words as features and labels, their counts; and what the trained model needs of it.
//
// Thread rule: the thread that owns the Compute, which must outlive it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engines/sparse/config.h"
#include "engines/sparse/step_source.h"
#include "host/api/compute.h"
#include "learn/data/dataset.h"
#include "learn/data/line_bag.h"
#include "learn/data/text_windows.h"
#include "learn/data/token_text.h"
#include "learn/sparse/negatives.h"
#include "learn/sparse/network.h"

namespace gossamer::node {

// A query is a line of words: the mean of the last 2 * window of them, as training saw the words of a window.
[[nodiscard]] data::LineShape word_line_shape(const engine::Word2vecConfig& config);

class WordTraining {
 public:
  // Requires a text with a window (data::first_window).
  WordTraining(data::TokenText text, const engine::TrainConfig& config, host::Compute& compute);
  WordTraining(const WordTraining&) = delete;
  WordTraining& operator=(const WordTraining&) = delete;

  [[nodiscard]] const data::Schema& schema() const { return schema_; }
  [[nodiscard]] const sparse::LabelCounts& labels() const { return labels_; }
  [[nodiscard]] engine::StepSource& steps() { return steps_; }
  [[nodiscard]] const data::TokenText& text() const { return text_; }
  [[nodiscard]] std::uint64_t bytes() const { return text_.token.size() * sizeof(std::uint32_t); }
  // Words of the text.
  [[nodiscard]] std::uint64_t words() const;
  // How often each word stands in the text.
  [[nodiscard]] std::vector<std::uint32_t> word_counts() const;

  // Training saw a frequent word thinned out to the share `keep` of its occurrences; -ln keep on its bias
  // gives it back, so that scores are those of the text as it is written.
  void restore_frequencies(sparse::Network& network) const;

 private:
  class Schema final : public data::Schema {
   public:
    explicit Schema(const WordTraining& owner) : owner_(owner) {}
    [[nodiscard]] std::uint64_t size() const override { return owner_.windows_.samples_per_epoch(); }
    [[nodiscard]] std::uint32_t features() const override {
      return static_cast<std::uint32_t>(owner_.text_.words.size());
    }
    [[nodiscard]] std::uint32_t labels() const override { return features(); }
    [[nodiscard]] std::uint64_t feature_entries() const override;
    [[nodiscard]] std::uint64_t label_entries() const override;
    [[nodiscard]] std::string_view label_name(std::uint32_t label) const override {
      return owner_.text_.words[label];
    }
    [[nodiscard]] std::string_view feature_name(std::uint32_t feature) const override {
      return owner_.text_.words[feature];
    }
    [[nodiscard]] bool has_label_names() const override { return true; }
    [[nodiscard]] bool has_feature_names() const override { return true; }

   private:
    const WordTraining& owner_;
  };

  [[nodiscard]] std::uint64_t around() const;  // words in all windows of an epoch, at most

  data::TokenText text_;
  engine::Word2vecConfig config_;
  data::TextWindows windows_;
  engine::WindowSteps steps_;
  Schema schema_;
  sparse::LabelCounts labels_;
};

}  // namespace gossamer::node
