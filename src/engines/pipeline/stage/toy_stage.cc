// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/toy_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/aligned_array.h"
#include "base/check.h"
#include "base/rng.h"
#include "engines/pipeline/stage/toy_layer.h"
#include "exact/normal_numbers.h"

namespace gossamer::pipeline {
namespace {

// The numbers of a tensor's random stream within its layer; what is in no layer has the number of layers
// there.
enum class ToyTensor : std::uint32_t { kMix, kIn, kOut, kTokens, kPositions, kHead };

class ToyStage final : public StageBackend {
 public:
  ToyStage(const ToyShape& shape, const StageCut& cut, std::uint64_t seed);

  [[nodiscard]] const StageCut& cut() const override { return cut_; }
  [[nodiscard]] std::uint32_t width() const override { return shape_.width; }
  [[nodiscard]] std::uint32_t vocabulary() const override { return shape_.vocabulary; }
  [[nodiscard]] std::uint32_t context() const override { return shape_.context; }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return tensors_; }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch& microbatch, Keep keep) override;
  [[nodiscard]] Result<std::vector<double>> next_scores(std::span<const TokenNumber> window) override;
  [[nodiscard]] Result<void> weights_changed() override {
    CHECK(tasks_ == 0, tasks_);
    return {};
  }

  [[nodiscard]] const ToyShape& shape() const { return shape_; }
  // Counts the tasks that live.
  void task_begins() { ++tasks_; }
  void task_ends() { --tasks_; }
  // Weights or accumulators of layer first + k.
  enum class Of { kWeights, kGradients };
  [[nodiscard]] ToyLayerTensors layer(std::size_t k, Of of) {
    const std::size_t at = (cut_.has_embedding() ? 2 : 0) + 3 * k;
    return {.mix = numbers(at, of), .in = numbers(at + 1, of), .out = numbers(at + 2, of)};
  }
  // What the first layer takes for windows of `context` tokens each.
  [[nodiscard]] std::vector<double> embedded(std::span<const TokenNumber> text, std::size_t context);
  [[nodiscard]] bool knows(std::span<const TokenNumber> tokens) const {
    return std::ranges::all_of(tokens, [&](TokenNumber token) { return token < shape_.vocabulary; });
  }
  [[nodiscard]] std::span<double> tokens(Of of) { return numbers(0, of); }
  [[nodiscard]] std::span<double> positions(Of of) { return numbers(1, of); }
  [[nodiscard]] std::span<double> head(Of of) { return numbers(tensors_.size() - 1, of); }

 private:
  void add(const std::string& name, std::array<std::uint64_t, 2> shape, double deviation, Rng rng);
  [[nodiscard]] std::span<double> numbers(std::size_t tensor, Of of) {
    return (of == Of::kWeights ? weights_ : gradients_)[tensor].span();
  }

  ToyShape shape_;
  StageCut cut_;
  std::vector<AlignedArray<double>> weights_;
  std::vector<AlignedArray<double>> gradients_;
  std::vector<StageTensor> tensors_;
  std::size_t tasks_ = 0;
};

ToyStage::ToyStage(const ToyShape& shape, const StageCut& cut, std::uint64_t seed)
    : shape_(shape), cut_(cut) {
  CHECK(cut.first < cut.last && cut.last <= cut.layers && cut.layers == shape.layers);
  const auto rng = [seed](std::uint32_t layer, ToyTensor tensor) {
    return Rng(seed, Purpose::kStageInit, layer, static_cast<std::uint32_t>(tensor));
  };
  const double per_width = 1 / std::sqrt(static_cast<double>(shape.width));
  const double per_hidden = 1 / std::sqrt(static_cast<double>(shape.hidden));
  if (cut.has_embedding()) {
    add("embedding.tokens", {shape.vocabulary, shape.width}, 1, rng(shape.layers, ToyTensor::kTokens));
    add("embedding.positions", {shape.context, shape.width}, 0.25, rng(shape.layers, ToyTensor::kPositions));
  }
  for (std::uint32_t k = cut.first; k < cut.last; ++k) {
    add(fmt::format("layers.{}.mix", k), {shape.width, shape.width}, per_width, rng(k, ToyTensor::kMix));
    add(fmt::format("layers.{}.in", k), {shape.hidden, shape.width}, per_width, rng(k, ToyTensor::kIn));
    add(fmt::format("layers.{}.out", k), {shape.width, shape.hidden}, per_hidden, rng(k, ToyTensor::kOut));
  }
  if (cut.has_head())
    add("head", {shape.vocabulary, shape.width}, per_width, rng(shape.layers, ToyTensor::kHead));
}

void ToyStage::add(const std::string& name, std::array<std::uint64_t, 2> shape, double deviation, Rng rng) {
  const std::size_t size = shape[0] * shape[1];
  weights_.emplace_back(size);
  gradients_.emplace_back(size);
  exact::fill_normal(rng, deviation, weights_.back().span());
  tensors_.push_back({.name = name,
                      .shape = {shape[0], shape[1]},
                      .weights = weights_.back().span(),
                      .gradients = gradients_.back().span()});
}

std::vector<double> ToyStage::embedded(std::span<const TokenNumber> text, std::size_t context) {
  const std::size_t width = shape_.width;
  std::vector<double> x(text.size() * width);
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::size_t token = std::size_t{text[t]} * width;
    const std::size_t position = t % context * width;
    for (std::size_t i = 0; i < width; ++i)
      x[t * width + i] = tokens(Of::kWeights)[token + i] + positions(Of::kWeights)[position + i];
  }
  return x;
}

Result<std::vector<double>> ToyStage::next_scores(std::span<const TokenNumber> window) {
  CHECK(cut_.has_embedding() && cut_.has_head() && knows(window));
  CHECK(!window.empty() && window.size() <= shape_.context, window.size());
  const auto context = static_cast<std::uint32_t>(window.size());
  std::vector<double> x = embedded(window, context);
  for (std::size_t k = 0; k < shape_.layers; ++k) {
    const ToyLayer layer(shape_, context, this->layer(k, Of::kWeights));
    x = layer.output(layer.values(x));
  }
  std::vector<double> scores(shape_.vocabulary);
  toy_multiply(head(Of::kWeights), std::span(x).last(shape_.width), scores);
  return scores;
}

// What the calls of _next() have done so far is a number of pieces: the embedding (where the stage has it),
// each layer, the head. The backward pass and the products go from the last piece to the first.
class ToyTask final : public StageTask {
 public:
  ToyTask(ToyStage& stage, const Microbatch& microbatch, Keep keep);
  ~ToyTask() override { stage_.task_ends(); }

  [[nodiscard]] Result<bool> forward_next() override;
  [[nodiscard]] ConstNumbers output() const override;
  [[nodiscard]] LossSum loss() const override;
  [[nodiscard]] Result<void> begin_backward(std::optional<ConstNumbers> gradient) override;
  [[nodiscard]] Result<bool> backward_next() override;
  [[nodiscard]] ConstNumbers input_gradient() const override;
  [[nodiscard]] bool can_add() const override { return added_ < passed_; }
  [[nodiscard]] Result<bool> add_next() override;
  void keep_less(Keep keep) override;
  [[nodiscard]] std::uint64_t bytes() const override;

 private:
  enum class Phase { kForward, kBetween, kAgain, kBackward, kPassed };
  using Of = ToyStage::Of;

  struct Kept {
    std::vector<double> input;
    std::optional<ToyLayerValues> values;
    ToyLayerGradients gradients;
  };

  [[nodiscard]] std::size_t layers() const { return layers_.size(); }
  [[nodiscard]] ToyLayer layer(std::size_t k) {
    return {stage_.shape(), context_, stage_.layer(k, Of::kWeights)};
  }
  void score();
  void forward_layer(std::size_t k);
  void backward_layer(std::size_t k);
  void drop_what_is_not_kept();
  void add_embedding();
  void add_head();

  ToyStage& stage_;
  Keep keep_;
  std::uint32_t context_;
  std::vector<TokenNumber> tokens_, targets_;
  Phase phase_ = Phase::kForward;
  std::size_t done_ = 0;    // layers forward
  std::size_t passed_ = 0;  // layers backward
  std::size_t added_ = 0;   // layers whose products are added
  std::vector<Kept> layers_;
  std::vector<double> output_;          // of the last layer
  std::vector<double> score_gradient_;  // [tokens, vocabulary], of a last stage
  std::vector<double> gradient_;        // of the output of what comes next backwards
  LossSum loss_;
};

ToyTask::ToyTask(ToyStage& stage, const Microbatch& microbatch, Keep keep)
    : stage_(stage),
      keep_(keep),
      context_(microbatch.context),
      tokens_(microbatch.tokens.begin(), microbatch.tokens.end()),
      targets_(microbatch.targets.begin(), microbatch.targets.end()),
      layers_(stage.cut().last - stage.cut().first) {
  stage.task_begins();
  const std::size_t count = std::size_t{microbatch.windows} * microbatch.context;
  CHECK(count > 0 && context_ <= stage.shape().context, count, context_);
  const auto fits = [&](const std::vector<TokenNumber>& numbers, bool needed) {
    return numbers.size() == (needed ? count : 0) && stage.knows(numbers);
  };
  CHECK(fits(tokens_, stage.cut().has_embedding()) && fits(targets_, stage.cut().has_head()));
  CHECK(microbatch.boundary.has_value() != stage.cut().has_embedding());
  if (!microbatch.boundary.has_value()) return;
  const auto boundary = std::get<std::span<const double>>(*microbatch.boundary);
  CHECK(boundary.size() == count * stage.width(), boundary.size(), count);
  layers_.front().input.assign(boundary.begin(), boundary.end());
}

void ToyTask::score() {
  const std::size_t width = stage_.width();
  const std::size_t vocabulary = stage_.shape().vocabulary;
  score_gradient_.assign(targets_.size() * vocabulary, 0);
  loss_ = {.loss = 0, .tokens = targets_.size()};
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const auto scores = std::span(score_gradient_).subspan(t * vocabulary, vocabulary);
    toy_multiply(stage_.head(Of::kWeights), std::span(output_).subspan(t * width, width), scores);
    scores[targets_[t]] -= 1;
    double squares = 0;
    for (const double score : scores) squares += score * score;
    loss_.loss += squares / 2;
  }
}

void ToyTask::forward_layer(std::size_t k) {
  Kept& kept = layers_[k];
  kept.values = layer(k).values(kept.input);
  std::vector<double> y = layer(k).output(*kept.values);
  (k + 1 < layers() ? layers_[k + 1].input : output_) = std::move(y);
}

void ToyTask::drop_what_is_not_kept() {
  for (std::size_t k = 0; k < layers(); ++k) {
    if (keep_ != Keep::kAll) layers_[k].values.reset();
    if (keep_ == Keep::kInput && k > 0) layers_[k].input = {};
  }
}

Result<bool> ToyTask::forward_next() {
  CHECK(phase_ == Phase::kForward);
  if (done_ == 0 && stage_.cut().has_embedding()) layers_.front().input = stage_.embedded(tokens_, context_);
  forward_layer(done_++);
  if (done_ < layers()) return true;
  if (stage_.cut().has_head()) score();
  phase_ = Phase::kBetween;
  drop_what_is_not_kept();
  return false;
}

ConstNumbers ToyTask::output() const {
  CHECK(phase_ != Phase::kForward && !stage_.cut().has_head());
  return std::span<const double>(output_);
}

LossSum ToyTask::loss() const {
  CHECK(phase_ != Phase::kForward && stage_.cut().has_head());
  return loss_;
}

void ToyTask::keep_less(Keep keep) {
  CHECK(phase_ == Phase::kBetween);
  keep_ = std::min(keep_, keep);
  drop_what_is_not_kept();
}

Result<void> ToyTask::begin_backward(std::optional<ConstNumbers> gradient) {
  CHECK(phase_ == Phase::kBetween && gradient.has_value() != stage_.cut().has_head());
  if (gradient.has_value()) {
    const auto numbers = std::get<std::span<const double>>(*gradient);
    CHECK(numbers.size() == output_.size(), numbers.size(), output_.size());
    gradient_.assign(numbers.begin(), numbers.end());
  }
  done_ = 0;
  // Without the inputs of layers the stage goes forward once more.
  const bool inputs_are_there = keep_ != Keep::kInput || layers() == 1;
  phase_ = inputs_are_there ? Phase::kBackward : Phase::kAgain;
  return {};
}

void ToyTask::backward_layer(std::size_t k) {
  Kept& kept = layers_[k];
  if (k + 1 == layers() && stage_.cut().has_head()) {
    const std::size_t width = stage_.width();
    const std::size_t vocabulary = stage_.shape().vocabulary;
    gradient_.assign(output_.size(), 0);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      toy_multiply_transposed(stage_.head(Of::kWeights),
                              std::span(score_gradient_).subspan(t * vocabulary, vocabulary),
                              std::span(gradient_).subspan(t * width, width));
    }
  }
  if (!kept.values.has_value()) kept.values = layer(k).values(kept.input);
  kept.gradients = layer(k).gradients(*kept.values, std::move(gradient_));
  gradient_ = kept.gradients.input;
}

Result<bool> ToyTask::backward_next() {
  CHECK(phase_ == Phase::kAgain || phase_ == Phase::kBackward);
  if (phase_ == Phase::kAgain) {
    // The last layer goes forward again in its backward call. Its output is there still.
    forward_layer(done_);
    layers_[done_++].values.reset();
    if (done_ + 1 == layers()) phase_ = Phase::kBackward;
    return true;
  }
  backward_layer(layers() - 1 - passed_);
  if (++passed_ < layers()) return true;
  phase_ = Phase::kPassed;
  return false;
}

ConstNumbers ToyTask::input_gradient() const {
  CHECK(phase_ == Phase::kPassed && !stage_.cut().has_embedding());
  return std::span<const double>(gradient_);
}

void ToyTask::add_head() {
  const std::size_t width = stage_.width();
  const std::size_t vocabulary = stage_.shape().vocabulary;
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    toy_add_product(std::span(score_gradient_).subspan(t * vocabulary, vocabulary),
                    std::span(output_).subspan(t * width, width), stage_.head(Of::kGradients));
  }
}

void ToyTask::add_embedding() {
  const std::size_t width = stage_.width();
  for (std::size_t t = 0; t < tokens_.size(); ++t) {
    const std::size_t token = std::size_t{tokens_[t]} * width;
    const std::size_t position = t % context_ * width;
    for (std::size_t i = 0; i < width; ++i) {
      stage_.tokens(Of::kGradients)[token + i] += gradient_[t * width + i];
      stage_.positions(Of::kGradients)[position + i] += gradient_[t * width + i];
    }
  }
}

Result<bool> ToyTask::add_next() {
  CHECK(can_add());
  if (added_ == 0 && stage_.cut().has_head()) add_head();
  const std::size_t k = layers() - 1 - added_++;
  layer(k).add_products(*layers_[k].values, layers_[k].gradients, stage_.layer(k, Of::kGradients));
  layers_[k].values.reset();
  layers_[k].gradients = {};
  if (k > 0) return true;
  if (stage_.cut().has_embedding()) add_embedding();
  return false;
}

std::uint64_t ToyTask::bytes() const {
  std::size_t numbers = output_.size() + score_gradient_.size() + gradient_.size();
  for (const Kept& kept : layers_) {
    numbers += kept.input.size() + kept.gradients.size();
    if (kept.values.has_value()) numbers += kept.values->size();
  }
  return numbers * sizeof(double) + (tokens_.size() + targets_.size()) * sizeof(TokenNumber);
}

Result<std::unique_ptr<StageTask>> ToyStage::begin(const Microbatch& microbatch, Keep keep) {
  return std::unique_ptr<StageTask>(std::make_unique<ToyTask>(*this, microbatch, keep));
}

}  // namespace

std::unique_ptr<StageBackend> make_toy_stage(const ToyShape& shape, const StageCut& cut, std::uint64_t seed) {
  return std::make_unique<ToyStage>(shape, cut, seed);
}

}  // namespace gossamer::pipeline
