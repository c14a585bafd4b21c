// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/toy_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/rng.h"

namespace gossamer::pipeline {
namespace {

constexpr ToyShape kToy{.vocabulary = 11, .context = 5, .width = 4, .hidden = 6, .layers = 3};
constexpr std::uint64_t kToySeed = 7;

struct ToyText {
  std::vector<TokenNumber> tokens, targets;
};
ToyText toy_text(std::uint32_t windows, std::uint32_t context, std::uint64_t stream) {
  Rng random(21, Purpose::kTest, stream);
  ToyText text;
  for (std::uint32_t i = 0; i < windows * context; ++i) {
    text.tokens.push_back(static_cast<TokenNumber>(random.below(kToy.vocabulary)));
    text.targets.push_back(static_cast<TokenNumber>(random.below(kToy.vocabulary)));
  }
  return text;
}

// A model that is cut after some of its layers.
struct Pipeline {
  std::vector<std::unique_ptr<StageBackend>> stages;

  explicit Pipeline(const std::vector<std::uint32_t>& ends) {
    std::uint32_t first = 0;
    for (const std::uint32_t end : ends) {
      const StageCut cut{.first = first, .last = end, .layers = kToy.layers};
      stages.push_back(make_toy_stage(kToy, cut, kToySeed));
      first = end;
    }
  }

  // Forward, backward, products of one microbatch; the loss.
  enum class Products { kLate, kEarly };  // kEarly: between the calls of the backward pass
  double add(const ToyText& text, std::uint32_t windows, Keep keep, Products products = Products::kLate) {
    const auto context = static_cast<std::uint32_t>(text.tokens.size() / windows);
    std::vector<std::unique_ptr<StageTask>> tasks;
    for (const auto& stage : stages) {
      Microbatch microbatch{.windows = windows, .context = context, .tokens = {}, .targets = {}};
      if (stage->cut().has_embedding()) microbatch.tokens = text.tokens;
      if (stage->cut().has_head()) microbatch.targets = text.targets;
      if (!tasks.empty()) microbatch.boundary = tasks.back()->output();
      tasks.push_back(*stage->begin(microbatch, keep));
      while (*tasks.back()->forward_next()) continue;
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

  [[nodiscard]] std::vector<StageTensor> tensors() const {
    std::vector<StageTensor> all;
    for (const auto& stage : stages) all.insert(all.end(), stage->tensors().begin(), stage->tensors().end());
    return all;
  }
};

std::span<double> doubles(const Numbers& numbers) { return std::get<std::span<double>>(numbers); }

std::vector<double> all_gradients(const Pipeline& pipeline) {
  std::vector<double> all;
  for (const StageTensor& tensor : pipeline.tensors()) {
    const auto part = doubles(tensor.gradients);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Claim: each accumulator holds the derivative of the loss: central differences over every weight agree.
TEST(ToyStage, GradientsAreDerivatives) {
  const ToyText text = toy_text(2, 5, 1);
  Pipeline pipeline({3});
  pipeline.add(text, 2, Keep::kAll);
  for (const StageTensor& tensor : pipeline.tensors()) {
    for (std::size_t i = 0; i < doubles(tensor.weights).size(); ++i) {
      double& weight = doubles(tensor.weights)[i];
      const double before = weight;
      constexpr double kMove = 1e-5;
      const auto loss_at = [&](double value) {
        weight = value;
        const Microbatch microbatch{
            .windows = 2, .context = 5, .tokens = text.tokens, .targets = text.targets};
        const auto task = *pipeline.stages[0]->begin(microbatch, Keep::kInput);
        while (*task->forward_next()) continue;
        return task->loss().loss;
      };
      const double difference = (loss_at(before + kMove) - loss_at(before - kMove)) / (2 * kMove);
      weight = before;
      EXPECT_NEAR(doubles(tensor.gradients)[i], difference, 1e-6 * std::max(1.0, std::abs(difference)))
          << tensor.name << "[" << i << "]";
    }
  }
}

// Claim: wherever the model is cut, and whatever a task keeps, loss and gradients have the same bits.
TEST(ToyStage, CutsAndKeepingChangeNoBit) {
  const ToyText text = toy_text(3, 4, 2);
  Pipeline whole({3});
  const double loss = whole.add(text, 3, Keep::kAll);
  const std::vector<double> gradients = all_gradients(whole);
  for (const std::vector<std::uint32_t>& ends : {std::vector<std::uint32_t>{3}, {1, 3}, {2, 3}, {1, 2, 3}}) {
    for (const Keep keep : {Keep::kInput, Keep::kLayerInputs, Keep::kAll}) {
      for (const auto products : {Pipeline::Products::kLate, Pipeline::Products::kEarly}) {
        Pipeline cut(ends);
        EXPECT_EQ(cut.add(text, 3, keep, products), loss);
        EXPECT_EQ(all_gradients(cut), gradients);
      }
    }
  }
}

// Claim: a token's loss does not depend on later tokens, nor on other windows.
TEST(ToyStage, LooksAtEarlierTokensOfItsWindowAlone) {
  ToyText text = toy_text(2, 5, 3);
  const StageCut cut{.first = 0, .last = 2, .layers = 3};
  const auto boundary_of = [&](const ToyText& some) {
    const auto stage = make_toy_stage(kToy, cut, kToySeed);
    const auto task =
        *stage->begin({.windows = 2, .context = 5, .tokens = some.tokens, .targets = {}}, Keep::kInput);
    while (*task->forward_next()) continue;
    const auto numbers = std::get<std::span<const double>>(task->output());
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  const std::vector<double> before = boundary_of(text);
  text.tokens[3] = (text.tokens[3] + 1) % TokenNumber{kToy.vocabulary};
  const std::vector<double> after = boundary_of(text);
  for (std::size_t t = 0; t < 10; ++t) {
    const bool same = std::equal(before.begin() + static_cast<std::ptrdiff_t>(4 * t),
                                 before.begin() + static_cast<std::ptrdiff_t>(4 * t + 4),
                                 after.begin() + static_cast<std::ptrdiff_t>(4 * t));
    EXPECT_EQ(same, t != 3 && t != 4) << t;
  }
}

// Claim: the output of a stage stays where it is until the task ends, also while the stage goes forward
// again.
TEST(ToyStage, OutputStays) {
  const ToyText text = toy_text(1, 5, 8);
  const auto stage = make_toy_stage(kToy, {.first = 0, .last = 2, .layers = 3}, kToySeed);
  const auto task =
      *stage->begin({.windows = 1, .context = 5, .tokens = text.tokens, .targets = {}}, Keep::kInput);
  while (*task->forward_next()) continue;
  const auto output = std::get<std::span<const double>>(task->output());
  const std::vector<double> before(output.begin(), output.end());
  EXPECT_TRUE(task->begin_backward(ConstNumbers(output)).ok());
  while (*task->backward_next()) continue;
  while (*task->add_next()) continue;
  EXPECT_TRUE(std::equal(before.begin(), before.end(), output.begin(), output.end()));
}

// Claim: accumulators add up over microbatches, and a task that ends before add_next() has added nothing.
TEST(ToyStage, AccumulatesWhatIsAddedAlone) {
  const ToyText one = toy_text(1, 5, 4);
  const ToyText two = toy_text(1, 5, 5);
  Pipeline both({3});
  both.add(one, 1, Keep::kAll);
  const std::vector<double> after_one = all_gradients(both);
  {
    const Microbatch microbatch{.windows = 1, .context = 5, .tokens = two.tokens, .targets = two.targets};
    const auto task = *both.stages[0]->begin(microbatch, Keep::kAll);
    while (*task->forward_next()) continue;
    EXPECT_TRUE(task->begin_backward({}).ok());
    while (*task->backward_next()) continue;
  }
  EXPECT_EQ(all_gradients(both), after_one);
  both.add(two, 1, Keep::kAll);
  Pipeline other({3});
  other.add(two, 1, Keep::kAll);
  const std::vector<double> sum = all_gradients(both);
  const std::vector<double> second = all_gradients(other);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], after_one[i] + second[i], 1e-12);
}

// Claim: each call is one layer of work, and keeping less gives memory back.
TEST(ToyStage, WorksLayerByLayer) {
  const ToyText text = toy_text(2, 5, 6);
  const auto stage = make_toy_stage(kToy, {.first = 0, .last = 3, .layers = 3}, kToySeed);
  const auto task =
      *stage->begin({.windows = 2, .context = 5, .tokens = text.tokens, .targets = text.targets}, Keep::kAll);
  EXPECT_TRUE(*task->forward_next());
  EXPECT_TRUE(*task->forward_next());
  EXPECT_FALSE(*task->forward_next());
  const std::uint64_t all = task->bytes();
  task->keep_less(Keep::kLayerInputs);
  const std::uint64_t inputs = task->bytes();
  task->keep_less(Keep::kAll);
  EXPECT_EQ(task->bytes(), inputs);
  task->keep_less(Keep::kInput);
  EXPECT_LT(inputs, all);
  EXPECT_LT(task->bytes(), inputs);
  EXPECT_TRUE(task->begin_backward({}).ok());
  int calls = 1;
  while (*task->backward_next()) ++calls;
  EXPECT_EQ(calls, 5);  // two layers forward again, three backward
  calls = 1;
  while (*task->add_next()) ++calls;
  EXPECT_EQ(calls, 3);
}

// y = w x for a matrix [rows, x.size()].
std::vector<double> plain_product(std::span<const double> w, const std::vector<double>& x) {
  std::vector<double> y(w.size() / x.size());
  for (std::size_t i = 0; i < w.size(); ++i) y[i / x.size()] += w[i] * x[i % x.size()];
  return y;
}

// Claim: the scores of the token behind a window of any length are those of the formulas in the header, of
// which the loss is made, too. Nothing of it is left: no gradient, and no task.
TEST(ToyStage, NextScoresAreThoseOfTheFormulas) {
  const auto stage = make_toy_stage(kToy, {.first = 0, .last = 3, .layers = 3}, kToySeed);
  const auto weights = [&](std::size_t tensor) { return doubles(stage->tensors()[tensor].weights); };
  const ToyText text = toy_text(1, 5, 9);
  double loss_before = 0;
  for (std::uint32_t length = 1; length <= 5; ++length) {
    const auto window = std::span(text.tokens).first(length);
    std::vector<std::vector<double>> x(length, std::vector<double>(4));
    for (std::size_t t = 0; t < length; ++t) {
      for (std::size_t i = 0; i < 4; ++i)
        x[t][i] = weights(0)[std::size_t{window[t]} * 4 + i] + weights(1)[4 * t + i];
    }
    for (std::size_t layer = 0; layer < 3; ++layer) {
      std::vector<double> sum(4);
      for (std::size_t t = 0; t < length; ++t) {
        std::vector<double> mean(4);
        for (std::size_t i = 0; i < 4; ++i) {
          sum[i] += x[t][i];
          mean[i] = sum[i] / static_cast<double>(t + 1);
        }
        std::vector<double> a = plain_product(weights(2 + 3 * layer), mean);
        for (std::size_t i = 0; i < 4; ++i) a[i] += x[t][i];
        std::vector<double> hidden = plain_product(weights(3 + 3 * layer), a);
        for (double& h : hidden) h = std::max(h, 0.0);
        const std::vector<double> added = plain_product(weights(4 + 3 * layer), hidden);
        for (std::size_t i = 0; i < 4; ++i) x[t][i] = a[i] + added[i];
      }
    }
    const std::vector<double> right = plain_product(weights(11), x.back());
    const auto scores = stage->next_scores(window);
    ASSERT_TRUE(scores.ok());
    ASSERT_EQ(scores->size(), 11U);
    double squares = 0;
    for (std::size_t v = 0; v < 11; ++v) {
      EXPECT_NEAR((*scores)[v], right[v], 1e-12) << length;
      const double off = (*scores)[v] - (v == text.targets[length - 1] ? 1 : 0);
      squares += off * off;
    }
    const auto task = *stage->begin(
        {.windows = 1, .context = length, .tokens = window, .targets = std::span(text.targets).first(length)},
        Keep::kInput);
    while (*task->forward_next()) continue;
    EXPECT_NEAR(task->loss().loss - loss_before, squares / 2, 1e-12) << length;
    loss_before = task->loss().loss;
  }
  for (const StageTensor& tensor : stage->tensors()) {
    for (const double gradient : doubles(tensor.gradients)) EXPECT_EQ(gradient, 0);
  }
  EXPECT_TRUE(stage->weights_changed().ok());
}

// Claim: misuse stops the program: another order of calls, an array that is missing or of another size, a
// token beyond the vocabulary.
TEST(ToyStageDeathTest, Misuse) {
  const auto stage = make_toy_stage(kToy, {.first = 0, .last = 3, .layers = 3}, kToySeed);
  const ToyText text = toy_text(1, 5, 7);
  const auto begin = [&](std::span<const TokenNumber> tokens, std::span<const TokenNumber> targets) {
    return stage->begin({.windows = 1, .context = 5, .tokens = tokens, .targets = targets}, Keep::kAll);
  };
  EXPECT_DEATH((void)begin(text.tokens, {}), "fits");
  EXPECT_DEATH((void)begin(std::span(text.tokens).first(4), text.targets), "fits");
  std::vector<TokenNumber> strange = text.tokens;
  strange[2] = TokenNumber{kToy.vocabulary};
  EXPECT_DEATH((void)begin(strange, text.targets), "fits");
  const auto task = *begin(text.tokens, text.targets);
  EXPECT_DEATH((void)task->loss(), "phase_");
  EXPECT_DEATH((void)task->begin_backward({}), "phase_");
  EXPECT_DEATH((void)task->add_next(), "can_add");
  EXPECT_DEATH((void)stage->weights_changed(), "tasks_");
  EXPECT_DEATH((void)make_toy_stage(kToy, {.first = 1, .last = 1, .layers = 3}, kToySeed), "cut");
  EXPECT_DEATH((void)stage->next_scores({}), "window");
  EXPECT_DEATH((void)stage->next_scores(strange), "knows");
  const std::vector<TokenNumber> too_many(6);
  EXPECT_DEATH((void)stage->next_scores(too_many), "window");
  const auto part = make_toy_stage(kToy, {.first = 0, .last = 2, .layers = 3}, kToySeed);
  EXPECT_DEATH((void)part->next_scores(text.tokens), "has_head");
}

}  // namespace
}  // namespace gossamer::pipeline
