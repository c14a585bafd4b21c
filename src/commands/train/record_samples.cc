// SPDX-License-Identifier: Apache-2.0
#include "commands/train/record_samples.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "commands/records/record_import.h"
#include "commands/records/weighting_choice.h"
#include "engines/sparse/predict/calibration.h"
#include "engines/sparse/predict/fusion_learning.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/train/model_assembly.h"
#include "run/progress.h"

namespace gossamer::commands {

RecordSamples::RecordSamples(const run::NodeHost& host, std::unique_ptr<data::CachedDataset> records,
                             std::optional<text::FeaturizerState> featurizer)
    : host_(host), records_(std::move(records)), featurizer_(std::move(featurizer)) {}

FeatureKind RecordSamples::features() const {
  return featurizer_.has_value() ? FeatureKind::kText : feature_kind(*records_);
}

std::string RecordSamples::describe() const {
  std::string counts =
      fmt::format("{}, {}, {}", run::counted(records_->size(), "record"),
                  run::counted(records_->features(), "feature"), run::counted(records_->labels(), "label"));
  if (records_->size() == 0) return counts;  // sessions of one item make none
  const auto records = static_cast<double>(records_->size());
  return fmt::format("{} ({:.1f} features and {:.1f} labels a record)", counts,
                     static_cast<double>(records_->feature_entries()) / records,
                     static_cast<double>(records_->label_entries()) / records);
}

std::uint64_t RecordSamples::checksum() const {
  Digest digest = names_digest();
  if (!featurizer_) return digest.value();
  const auto add = [&digest](const auto& values) { digest.add(std::as_bytes(std::span(values))); };
  const text::FeaturizerOptions& options = featurizer_->options;
  add(std::array{featurizer_->documents});
  add(std::array{std::uint32_t{options.stems}, options.subword_min, options.subword_max,
                 options.min_document_frequency, options.max_features});
  add(std::array{options.stem_weight, options.subword_weight});
  return digest.value();
}

std::uint64_t RecordSamples::former_checksum() const { return names_digest().value(); }

// The digest of the records and of the counted features.
Digest RecordSamples::names_digest() const {
  Digest digest;
  const auto add = [&digest](const auto& values) { digest.add(std::as_bytes(std::span(values))); };
  add(std::array{records_->checksum()});
  if (!featurizer_) return digest;
  for (const std::string& feature : featurizer_->features) {
    add(std::array{feature.size()});
    add(feature);
  }
  add(featurizer_->document_frequency);
  return digest;
}

text::FittedWeighting RecordSamples::weigh(const sparse_engine::TrainConfig& config) const {
  return choose_weighting(config.data.weighting, *records_, featurizer_);
}

void RecordSamples::begin(const Plan& plan) {
  plan_.emplace(plan);
  hold_out_.emplace(records_->size(), plan.recipe.held_out);
  kept_.emplace(*records_, *hold_out_);
  steps_.emplace(sparse_engine::BatchReader(*kept_, plan.weighting, host_.compute), kept_->size(),
                 sparse_engine::RecordSteps::Options{.seed = plan.config.seed,
                                                     .batch = plan.config.train.batch,
                                                     .dropout = plan.config.train.input_dropout});
  labels_ = sparse::count_labels(*kept_);
}

sparse_engine::Model RecordSamples::model_of(sparse::Network network) const {
  return sparse_engine::assemble_model({.network = std::move(network),
                                        .schema = *kept_,
                                        .records = &*kept_,
                                        .weighting = plan_->weighting,
                                        .featurizer = featurizer_,
                                        .task = task(),
                                        .line = line(),
                                        .config = plan_->config},
                                       host_.kernels, host_.compute);
}

Result<void> RecordSamples::complete(sparse_engine::Model& model) const {
  if (hold_out_->held() == 0) return {};
  if (model.instances) {
    if (auto done = learn_fusion(model); !done.ok()) return done;
  }
  auto net = sparse_engine::Predictor::create(model, host_.kernels, host_.compute,
                                              {.fusion = model.fusion, .parts = sparse_engine::kNetAlone});
  if (!net.ok()) return net.error();
  if (auto done = calibrate(model, **net); !done.ok()) return done;
  if (model.instances) sparse_engine::replace_records(model, *records_, host_.kernels, host_.compute);
  return {};
}

// The weights of the fusion, and the calibration of what they give.
Result<void> RecordSamples::learn_fusion(sparse_engine::Model& model) const {
  const auto fitted =
      sparse_engine::learn_fusion_weights(model, sparse_engine::given_terms(plan_->config.predict), *records_,
                                          *hold_out_, host_.kernels, host_.compute);
  if (!fitted.ok()) return fitted.error();
  sparse_engine::CalibrationExamples examples;
  for (const sparse_engine::Half half : sparse_engine::kHalves) {
    sparse_engine::PredictOptions options = sparse_engine::default_options(model);
    options.fusion.weights = fitted->by_the_other[static_cast<std::size_t>(half)];
    auto predictor = sparse_engine::Predictor::create(model, host_.kernels, host_.compute, options);
    if (!predictor.ok()) return predictor.error();
    const sparse_engine::HeldOutRecords held{.dataset = *records_, .hold_out = *hold_out_, .half = half};
    if (auto done = sparse_engine::add_examples(**predictor, held, examples); !done.ok()) return done;
  }
  model.fusion.calibration = sparse_engine::fit_calibration(examples);
  model.fusion.weights = fitted->all.weights;
  host_.say(fmt::format("weights of prediction, from {} held-out records: {} (loss {:.3f}, before {:.3f})",
                        run::human_count(fitted->all.records), sparse_engine::describe(model.fusion.weights),
                        fitted->all.loss, fitted->all.loss_before));
  return {};
}

Result<void> RecordSamples::calibrate(sparse_engine::Model& model, sparse_engine::Predictor& net) const {
  if (hold_out_->held() == 0) return {};
  sparse_engine::CalibrationExamples examples;
  const sparse_engine::HeldOutRecords held{.dataset = *records_, .hold_out = *hold_out_};
  if (auto done = sparse_engine::add_examples(net, held, examples); !done.ok()) return done;
  model.fusion.net_calibration = sparse_engine::fit_calibration(examples);
  return {};
}

std::optional<data::LineShape> SessionSamples::line() const { return line_shape(sessions_); }

}  // namespace gossamer::commands
