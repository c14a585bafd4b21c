// SPDX-License-Identifier: Apache-2.0
//
// WordTraining is what a run of word2vec trains on, made of the run's text. It has windows as steps,
// the schema with words as features and labels, and the counts of words. It also has what the
// trained model needs of the text.
//
// Thread rule: the thread that owns the Compute, which must outlive it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engines/sparse/config/config.h"
#include "engines/sparse/train/step_source.h"
#include "host/api/compute.h"
#include "learn/data/dataset.h"
#include "learn/data/line_bag.h"
#include "learn/data/text_windows.h"
#include "learn/data/token_text.h"
#include "learn/sparse/negatives/negatives.h"
#include "learn/sparse/network/network.h"

namespace gossamer::commands {

// The shape of a query, which is a line of words. It becomes the mean of the last 2 * window words, as
// training saw the words of a window.
[[nodiscard]] data::LineShape word_line_shape(const sparse_engine::Word2vecConfig& config);

class WordTraining {
 public:
  // Requires a text with a window (data::first_window).
  WordTraining(data::TokenText text, const sparse_engine::TrainConfig& config, host::Compute& compute);
  WordTraining(const WordTraining&) = delete;
  WordTraining& operator=(const WordTraining&) = delete;

  [[nodiscard]] const data::Schema& schema() const { return schema_; }
  [[nodiscard]] const sparse::LabelCounts& labels() const { return labels_; }
  [[nodiscard]] sparse_engine::StepSource& steps() { return steps_; }
  [[nodiscard]] const data::TokenText& text() const { return text_; }
  [[nodiscard]] std::uint64_t bytes() const { return text_.token.size() * sizeof(std::uint32_t); }
  // Words of the text.
  [[nodiscard]] std::uint64_t words() const;
  // How often each word stands in the text.
  [[nodiscard]] std::vector<std::uint32_t> word_counts() const;

  // Training saw only the fraction `keep` of the occurrences of a frequent word. Adding -ln keep to the
  // word's bias gives the others back, so that scores are those of the text as it is written.
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

  [[nodiscard]] std::uint64_t around() const;  // words in all windows of a pass over the text, at most

  data::TokenText text_;
  sparse_engine::Word2vecConfig config_;
  data::TextWindows windows_;
  sparse_engine::WindowSteps steps_;
  Schema schema_;
  sparse::LabelCounts labels_;
};

}  // namespace gossamer::commands
