// SPDX-License-Identifier: Apache-2.0
//
// WordSamples: the words of a text. The samples of a step are windows, made as they are needed. Words are
// both features and labels.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "commands/train/samples.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/train/step_source.h"
#include "learn/data/dataset.h"
#include "learn/data/text_windows.h"
#include "learn/data/token_text.h"
#include "learn/sparse/negatives/negatives.h"

namespace gossamer::commands {

class WordSamples final : public Samples {
 public:
  // Requires a text with a window (data::first_window).
  WordSamples(const run::NodeHost& host, data::TokenText text, const sparse_engine::TrainConfig& config);

  [[nodiscard]] const data::Schema& schema() const override { return schema_; }
  [[nodiscard]] FeatureKind features() const override { return FeatureKind::kWords; }
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::string_view counted() const override { return "samples an epoch"; }
  [[nodiscard]] std::uint64_t checksum() const override;
  [[nodiscard]] std::uint64_t bytes() const override { return text_.token.size() * sizeof(std::uint32_t); }
  [[nodiscard]] text::FittedWeighting weigh(const sparse_engine::TrainConfig& config) const override;

  void begin(const Plan& plan) override { plan_.emplace(plan); }
  [[nodiscard]] const data::Schema& trained() const override { return schema_; }
  [[nodiscard]] const sparse::LabelCounts& labels() const override { return labels_; }
  [[nodiscard]] sparse_engine::StepSource& steps() override { return steps_; }

  [[nodiscard]] sparse_engine::Model model_of(sparse::Network network) const override;

  // Training saw only the fraction `keep` of the occurrences of a frequent word. Adding -ln keep to the
  // word's bias gives the others back, so that scores are those of the text as it is written.
  void restore_frequencies(sparse::Network& network) const;

 private:
  class Schema final : public data::Schema {
   public:
    explicit Schema(const WordSamples& owner) : owner_(owner) {}
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
    const WordSamples& owner_;
  };

  [[nodiscard]] std::uint64_t words() const;   // of the text
  [[nodiscard]] std::uint64_t around() const;  // words in all windows of a pass over the text, at most

  const run::NodeHost& host_;
  const data::TokenText text_;
  const sparse_engine::Word2vecConfig config_;
  data::TextWindows windows_;
  sparse_engine::WindowSteps steps_;
  const Schema schema_;
  const sparse::LabelCounts labels_;
  std::optional<Plan> plan_;  // from begin() on
};

}  // namespace gossamer::commands
