// SPDX-License-Identifier: Apache-2.0
//
// RecordSamples: the records of a cache. Some of them may be held out, to learn the weights of prediction on
// them. SessionSamples: records that were made of sessions, whose task is to name the next item.
//
// Thread rule: the thread that owns the Compute.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "commands/train/samples.h"
#include "engines/sparse/train/batch_reader.h"
#include "learn/data/cached_dataset.h"
#include "learn/data/hold_out.h"
#include "learn/data/line_bag.h"
#include "learn/text/featurizer.h"

namespace gossamer::commands {

class RecordSamples : public Samples {
 public:
  // The featurizer is that of records of text.
  RecordSamples(const run::NodeHost& host, std::unique_ptr<data::CachedDataset> records,
                std::optional<text::FeaturizerState> featurizer);

  [[nodiscard]] const data::Schema& schema() const override { return *records_; }
  [[nodiscard]] FeatureKind features() const override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::string_view counted() const override { return "records"; }
  [[nodiscard]] std::uint64_t checksum() const override;
  [[nodiscard]] std::uint64_t former_checksum() const override;
  [[nodiscard]] text::FittedWeighting weigh(const sparse_engine::TrainConfig& config) const override;

  void begin(const Plan& plan) override;
  [[nodiscard]] const data::Schema& trained() const override { return *kept_; }
  [[nodiscard]] const sparse::LabelCounts& labels() const override { return labels_; }
  [[nodiscard]] sparse_engine::StepSource& steps() override { return *steps_; }

  [[nodiscard]] sparse_engine::Model model_of(sparse::Network network) const override;
  [[nodiscard]] Result<void> complete(sparse_engine::Model& model) const override;
  [[nodiscard]] Result<void> calibrate(sparse_engine::Model& model,
                                       sparse_engine::Predictor& net) const override;

 private:
  [[nodiscard]] Digest names_digest() const;
  [[nodiscard]] Result<void> learn_fusion(sparse_engine::Model& model) const;
  // What the model is for, and how its queries are read where they are lines of names.
  [[nodiscard]] virtual const char* task() const { return "xmc"; }
  [[nodiscard]] virtual std::optional<data::LineShape> line() const { return std::nullopt; }

  const run::NodeHost& host_;
  const std::unique_ptr<data::CachedDataset> records_;
  const std::optional<text::FeaturizerState> featurizer_;
  // From begin() on.
  std::optional<Plan> plan_;
  std::optional<data::HoldOut> hold_out_;
  std::optional<data::KeptRecords> kept_;
  std::optional<sparse_engine::RecordSteps> steps_;
  sparse::LabelCounts labels_;
};

class SessionSamples final : public RecordSamples {
 public:
  SessionSamples(const run::NodeHost& host, std::unique_ptr<data::CachedDataset> records,
                 const sparse_engine::SessionsConfig& sessions)
      : RecordSamples(host, std::move(records), std::nullopt), sessions_(sessions) {}

  [[nodiscard]] FeatureKind features() const override { return FeatureKind::kSessions; }

 private:
  [[nodiscard]] const char* task() const override { return "next-item"; }
  [[nodiscard]] std::optional<data::LineShape> line() const override;

  const sparse_engine::SessionsConfig sessions_;
};

}  // namespace gossamer::commands
