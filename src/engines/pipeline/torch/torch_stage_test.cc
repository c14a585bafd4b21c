// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/torch/torch_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engines/pipeline/stage/lm_activations.h"
#include "engines/pipeline/stage/stage_optimizer.h"

namespace gossamer::pipeline {
namespace {

constexpr LmShape kSmall{.vocabulary = 13,
                         .context = 6,
                         .width = 8,
                         .heads = 2,
                         .hidden = 12,
                         .layers = 3,
                         .biases = LmBiases::kAll};

struct LmText {
  std::vector<TokenNumber> tokens, targets;
  std::uint32_t windows = 2;
};
LmText lm_text(const LmShape& shape, std::uint32_t windows, std::uint32_t context, std::uint64_t stream) {
  Rng random(41, Purpose::kTest, stream);
  LmText text{.tokens = {}, .targets = {}, .windows = windows};
  for (std::uint32_t i = 0; i < windows * context; ++i) {
    text.tokens.push_back(static_cast<TokenNumber>(random.below(shape.vocabulary)));
    text.targets.push_back(static_cast<TokenNumber>(random.below(shape.vocabulary)));
  }
  return text;
}

// A model that is cut after some of its layers.
struct LmPipeline {
  std::vector<std::unique_ptr<StageBackend>> stages;

  LmPipeline(const LmShape& shape, const std::vector<std::uint32_t>& ends, Precision precision) {
    std::uint32_t first = 0;
    for (const std::uint32_t end : ends) {
      auto stage = make_torch_stage({.shape = shape,
                                     .cut = {.first = first, .last = end, .layers = shape.layers},
                                     .precision = precision,
                                     .seed = 9,
                                     .threads = 1});
      EXPECT_TRUE(stage.ok());
      stages.push_back(std::move(*stage));
      first = end;
    }
  }

  [[nodiscard]] std::unique_ptr<StageTask> begin(std::size_t s, const LmText& text, Keep keep,
                                                 const std::optional<ConstNumbers>& boundary) const {
    Microbatch microbatch{.windows = text.windows,
                          .context = static_cast<std::uint32_t>(text.tokens.size() / text.windows),
                          .tokens = {},
                          .targets = {},
                          .boundary = boundary};
    if (stages[s]->cut().has_embedding()) microbatch.tokens = text.tokens;
    if (stages[s]->cut().has_head()) microbatch.targets = text.targets;
    return *stages[s]->begin(microbatch, keep);
  }
  enum class Products { kLate, kEarly };  // kEarly: between the calls of the backward pass
  double add(const LmText& text, Keep keep, Products products = Products::kLate) const {
    std::vector<std::unique_ptr<StageTask>> tasks;
    std::optional<ConstNumbers> boundary;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      tasks.push_back(begin(s, text, keep, boundary));
      while (*tasks[s]->forward_next()) continue;
      if (s + 1 < stages.size()) boundary = tasks[s]->output();
    }
    std::optional<ConstNumbers> gradient;
    for (std::size_t s = stages.size(); s-- > 0;) {
      EXPECT_TRUE(tasks[s]->begin_backward(gradient).ok());
      while (*tasks[s]->backward_next()) {
        if (products == Products::kEarly && tasks[s]->can_add()) (void)*tasks[s]->add_next();
      }
      if (s > 0) gradient = tasks[s]->input_gradient();
    }
    for (const auto& task : tasks) {
      while (*task->add_next()) continue;
    }
    return tasks.back()->loss().loss;
  }
  [[nodiscard]] double loss(const LmText& text) const {
    std::vector<std::unique_ptr<StageTask>> tasks;
    std::optional<ConstNumbers> boundary;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      tasks.push_back(begin(s, text, Keep::kInput, boundary));
      while (*tasks[s]->forward_next()) continue;
      if (s + 1 < stages.size()) boundary = tasks[s]->output();
    }
    return tasks.back()->loss().loss;
  }
  [[nodiscard]] std::vector<StageTensor> tensors() const {
    std::vector<StageTensor> all;
    for (const auto& stage : stages) all.insert(all.end(), stage->tensors().begin(), stage->tensors().end());
    return all;
  }
  template <class T>
  [[nodiscard]] std::vector<T> gradients() const {
    std::vector<T> all;
    for (const StageTensor& tensor : tensors()) {
      const auto part = std::get<std::span<T>>(tensor.gradients);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
};

std::vector<LmShape> variants() {
  std::vector<LmShape> shapes(6, kSmall);
  shapes[1].activation = LmActivation::kSwiGlu;
  shapes[2].norm = LmNorm::kRms;
  shapes[2].biases = LmBiases::kNone;
  shapes[3].positions = LmPositions::kRotary;
  shapes[4].biases = LmBiases::kAllButKey;
  shapes[4].applied = 2;
  shapes[5].activation = LmActivation::kSwiGlu;
  shapes[5].norm = LmNorm::kRms;
  shapes[5].positions = LmPositions::kRotary;
  shapes[5].biases = LmBiases::kNone;
  return shapes;
}

// Claim: each accumulator holds the derivative of the summed loss, for all variants of the model: central
// differences over some weights of each tensor agree. Weights are made larger first, so that no part is flat.
TEST(TorchStage, GradientsAreDerivatives) {
  for (const LmShape& shape : variants()) {
    const LmText text = lm_text(shape, 2, 5, 1);
    const LmPipeline model(shape, {3}, Precision::kF64);
    for (const StageTensor& tensor : model.tensors()) {
      Rng random(43, Purpose::kTest, tensor.shape.size());
      for (double& x : std::get<std::span<double>>(tensor.weights))
        x = 6 * x + 0.15 * static_cast<double>(random.normal());
    }
    ASSERT_TRUE(model.stages[0]->weights_changed().ok());
    model.add(text, Keep::kAll);
    for (const StageTensor& tensor : model.tensors()) {
      const auto weights = std::get<std::span<double>>(tensor.weights);
      const auto sums = std::get<std::span<double>>(tensor.gradients);
      for (std::size_t i = 0; i < weights.size(); i += 1 + weights.size() / 7) {
        const double before = weights[i];
        constexpr double kMove = 1e-6;
        const auto loss_at = [&](double value) {
          weights[i] = value;
          EXPECT_TRUE(model.stages[0]->weights_changed().ok());
          return model.loss(text);
        };
        const double difference = (loss_at(before + kMove) - loss_at(before - kMove)) / (2 * kMove);
        (void)loss_at(before);
        EXPECT_NEAR(sums[i], difference, 1e-6 * std::max(1.0, std::abs(difference)))
            << tensor.name << "[" << i << "]";
      }
    }
  }
}

// Claim: wherever the model is cut, and whatever a task keeps, loss and gradients have the same bits, in all
// precisions whose boundary holds every number of a layer.
TEST(TorchStage, CutsAndKeepingChangeNoBit) {
  for (const LmShape& shape : variants()) {
    const LmText text = lm_text(shape, 3, 6, 2);
    for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
      const LmPipeline whole(shape, {3}, precision);
      const double loss = whole.add(text, Keep::kAll);
      const std::vector<float> gradients = whole.gradients<float>();
      EXPECT_NEAR(loss / 18, std::log(13.0), 0.2);
      for (const std::vector<std::uint32_t>& ends : {std::vector<std::uint32_t>{3}, {1, 3}, {1, 2, 3}}) {
        for (const Keep keep : {Keep::kInput, Keep::kLayerInputs, Keep::kAll}) {
          for (const auto products : {LmPipeline::Products::kLate, LmPipeline::Products::kEarly}) {
            const LmPipeline cut(shape, ends, precision);
            EXPECT_EQ(cut.add(text, keep, products), loss);
            EXPECT_EQ(cut.gradients<float>(), gradients);
          }
        }
      }
    }
  }
}

// Claim: a token's loss does not depend on later tokens: the loss of the first half of a window is the same
// with any second half.
TEST(TorchStage, LooksAtEarlierTokensAlone) {
  for (const LmShape& shape : variants()) {
    const LmPipeline model(shape, {2, 3}, Precision::kF64);
    const auto boundary_of = [&](const LmText& text) {
      const auto task = model.begin(0, text, Keep::kInput, {});
      while (*task->forward_next()) continue;
      const auto numbers = std::get<std::span<const double>>(task->output());
      return std::vector<double>(numbers.begin(), numbers.end());
    };
    LmText text = lm_text(shape, 1, 6, 3);
    const std::vector<double> before = boundary_of(text);
    text.tokens[3] = (text.tokens[3] + 1) % 13;
    const std::vector<double> after = boundary_of(text);
    for (std::size_t t = 0; t < 6; ++t) {
      double difference = 0;
      for (std::size_t i = 8 * t; i < 8 * t + 8; ++i)
        difference = std::max(difference, std::abs(before[i] - after[i]));
      EXPECT_EQ(difference > 1e-12, t >= 3) << t;
    }
  }
}

// Claim: each call is one piece: a layer applied once, or the head. Keeping less gives memory back.
TEST(TorchStage, WorksPieceByPiece) {
  LmShape shape = kSmall;
  shape.applied = 2;
  const LmText text = lm_text(shape, 2, 6, 4);
  const LmPipeline model(shape, {3}, Precision::kF32);
  const auto calls = [](auto&& next) {
    int count = 1;
    while (*next()) ++count;
    return count;
  };
  const auto task = model.begin(0, text, Keep::kAll, {});
  EXPECT_EQ(calls([&] { return task->forward_next(); }), 7);
  const std::uint64_t all = task->bytes();
  task->keep_less(Keep::kLayerInputs);
  const std::uint64_t inputs = task->bytes();
  task->keep_less(Keep::kInput);
  EXPECT_LT(inputs, all);
  EXPECT_LT(task->bytes(), inputs);
  EXPECT_TRUE(task->begin_backward({}).ok());
  EXPECT_EQ(calls([&] { return task->backward_next(); }), 12);  // five pieces again, the head, six pieces
  EXPECT_EQ(calls([&] { return task->add_next(); }), 7);
}

// Claim: where the vocabulary is large, a call scores some tokens and the next one the others. Whatever a
// task keeps, loss and gradients have the same bits.
TEST(TorchStage, ScoresSomeTokensAtATime) {
  LmShape shape = kSmall;
  shape.vocabulary = static_cast<std::uint32_t>(kScoresAtOnce / 16);
  shape.layers = 1;
  const LmText text = lm_text(shape, 3, 6, 8);  // 18 tokens
  std::optional<double> loss;
  std::vector<float> gradients;
  for (const Keep keep : {Keep::kAll, Keep::kLayerInputs, Keep::kInput}) {
    const LmPipeline model(shape, {1}, Precision::kF32);
    const auto task = model.begin(0, text, keep, {});
    int calls = 1;
    while (*task->forward_next()) ++calls;
    EXPECT_EQ(calls, 3) << "the layer, 16 tokens, 2 tokens";
    EXPECT_EQ(task->loss().tokens, 18U);
    ASSERT_TRUE(task->begin_backward({}).ok());
    calls = 1;
    while (*task->backward_next()) ++calls;
    EXPECT_EQ(calls, keep == Keep::kAll ? 2 : 3);
    while (*task->add_next()) continue;
    if (!loss.has_value()) {
      loss = task->loss().loss;
      gradients = model.gradients<float>();
    }
    EXPECT_EQ(task->loss().loss, *loss);
    EXPECT_EQ(model.gradients<float>(), gradients);
  }
  EXPECT_NEAR(*loss / 18, std::log(static_cast<double>(shape.vocabulary)), 0.2);
}

// Claim: the scores of the token behind a window of any length make the loss that this token adds, whichever
// it is, for all variants of the model.
TEST(TorchStage, NextScoresMakeTheLoss) {
  for (const LmShape& shape : variants()) {
    const LmPipeline model(shape, {3}, Precision::kF64);
    const LmText text = lm_text(shape, 1, 6, 7);
    const auto loss_of = [&](std::size_t length, TokenNumber last) {
      LmText part{
          .tokens = {text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(length)},
          .targets = {text.targets.begin(), text.targets.begin() + static_cast<std::ptrdiff_t>(length)},
          .windows = 1};
      if (length == 0) return 0.0;
      part.targets.back() = last;
      return model.loss(part);
    };
    for (std::size_t length = 1; length <= 6; ++length) {
      const auto scores = model.stages[0]->next_scores(std::span(text.tokens).first(length));
      ASSERT_TRUE(scores.ok());
      ASSERT_EQ(scores->size(), 13U);
      double sum = 0;
      for (const double score : *scores) sum += std::exp(score);
      const double before = length == 1 ? 0 : loss_of(length - 1, text.targets[length - 2]);
      for (TokenNumber token = 0; token < 13; ++token)
        EXPECT_NEAR(loss_of(length, token) - before, std::log(sum) - (*scores)[token], 1e-9) << length;
    }
  }
}

// Claim: a model in bf16 learns as one in float: after 60 steps on one text both have left less than a third
// of the first loss.
TEST(TorchStage, TrainsInFloatAndInBf16) {
  const LmText text = lm_text(kSmall, 2, 6, 5);
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const LmPipeline model(kSmall, {3}, precision);
    StageOptimizer optimizer(*model.stages[0], {});
    const double first = model.loss(text);
    for (std::uint64_t step = 0; step < 60; ++step) {
      model.add(text, Keep::kLayerInputs);
      optimizer.begin_step({.step = step, .rate = 0.01, .gradient_scale = 1.0 / 12});
      while (optimizer.apply_next()) continue;
      ASSERT_TRUE(model.stages[0]->weights_changed().ok());
    }
    EXPECT_LT(model.loss(text), first / 3);
  }
}

// Claim: a shape that no model has is refused with the key that is wrong.
TEST(TorchStage, RefusesAShapeThatNoModelHas) {
  LmShape shape = kSmall;
  shape.heads = 3;
  const auto stage = make_torch_stage({.shape = shape, .cut = {.first = 0, .last = 3, .layers = 3}});
  ASSERT_FALSE(stage.ok());
  EXPECT_EQ(stage.error().where, "model.heads");
}

}  // namespace
}  // namespace gossamer::pipeline
