// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/stage_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "engines/pipeline/stage/toy_stage.h"
#include "exact/dense_update.h"
#include "exact/floating_modes.h"

namespace gossamer::pipeline {
namespace {

constexpr exact::StepNumbers kStep{.step = 4, .rate = 0.01, .gradient_scale = 1.0 / 32};

// Two tensors and nothing that computes: a bias in float, a matrix in double of more than one block.
class TwoTensors final : public StageBackend {
 public:
  static constexpr std::size_t kRows = 3;
  static constexpr std::size_t kColumns = 65'536;

  TwoTensors() : bias_(5), bias_gradient_(5), matrix_(kRows * kColumns), matrix_gradient_(kRows * kColumns) {
    tensors_ = {{.name = "bias", .shape = {5}, .weights = bias_.span(), .gradients = bias_gradient_.span()},
                {.name = "matrix",
                 .shape = {kRows, kColumns},
                 .weights = matrix_.span(),
                 .gradients = matrix_gradient_.span()}};
    Rng random(31, Purpose::kTest);
    for (float& x : bias_.span()) x = random.normal();
    for (float& x : bias_gradient_.span()) x = random.normal();
    for (double& x : matrix_.span()) x = static_cast<double>(random.normal());
    for (double& x : matrix_gradient_.span()) x = static_cast<double>(random.normal());
  }
  [[nodiscard]] const StageCut& cut() const override { return cut_; }
  [[nodiscard]] std::uint32_t width() const override { return 1; }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return tensors_; }
  [[nodiscard]] std::uint32_t vocabulary() const override { return 1; }
  [[nodiscard]] std::uint32_t context() const override { return 1; }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch&, Keep) override {
    return Error{.what = "it computes nothing"};
  }
  [[nodiscard]] Result<std::vector<double>> next_scores(std::span<const TokenNumber>) override {
    return Error{.what = "it computes nothing"};
  }
  [[nodiscard]] Result<void> weights_changed() override { return {}; }

  [[nodiscard]] std::span<float> bias() { return bias_.span(); }
  [[nodiscard]] std::span<float> bias_gradient() { return bias_gradient_.span(); }
  [[nodiscard]] std::span<double> matrix() { return matrix_.span(); }
  [[nodiscard]] std::span<double> matrix_gradient() { return matrix_gradient_.span(); }

 private:
  StageCut cut_;
  AlignedArray<float> bias_, bias_gradient_;
  AlignedArray<double> matrix_, matrix_gradient_;
  std::vector<StageTensor> tensors_;
};

int apply(StageOptimizer& optimizer, const exact::StepNumbers& numbers) {
  optimizer.begin_step(numbers);
  int calls = 1;
  while (optimizer.apply_next()) ++calls;
  return calls;
}

template <class T>
std::vector<T> copy_of(std::span<T> numbers) {
  return {numbers.begin(), numbers.end()};
}

// Claim: a step is AdamW on each tensor; matrices decay, biases do not. Accumulators are zero afterwards, and
// each call is at most a block.
TEST(StageOptimizer, StepIsAdamWOnEachTensor) {
  const exact::FloatingModes modes;
  TwoTensors stage;
  const exact::AdamWOptions options{.weight_decay = 0.5};
  std::vector<float> bias = copy_of(stage.bias());
  std::vector<double> matrix = copy_of(stage.matrix());
  std::vector<float> zero_bias(5), zero_bias_too(5);
  std::vector<double> zero(matrix.size()), zero_too(matrix.size());
  const auto plain = kernels::Isa::kScalar;
  exact::dense_update<float>(plain).adamw({.weights = bias.data(),
                                           .first = zero_bias.data(),
                                           .second = zero_bias_too.data(),
                                           .gradients = stage.bias_gradient().data(),
                                           .n = 5},
                                          exact::adamw_factors<float>({.weight_decay = 0}, kStep));
  exact::dense_update<double>(plain).adamw({.weights = matrix.data(),
                                            .first = zero.data(),
                                            .second = zero_too.data(),
                                            .gradients = stage.matrix_gradient().data(),
                                            .n = matrix.size()},
                                           exact::adamw_factors<double>(options, kStep));
  StageOptimizer optimizer(stage, options);
  const std::size_t blocks = 1 + (matrix.size() * sizeof(double) - 1) / StageOptimizer::kBlockBytes + 1;
  EXPECT_EQ(apply(optimizer, kStep), static_cast<int>(blocks));
  EXPECT_EQ(copy_of(stage.bias()), bias);
  EXPECT_EQ(copy_of(stage.matrix()), matrix);
  EXPECT_EQ(copy_of(std::get<std::span<double>>(optimizer.first_moment(1))), zero);
  EXPECT_EQ(copy_of(std::get<std::span<float>>(optimizer.second_moment(0))), zero_bias_too);
  EXPECT_EQ(optimizer.squared_norm(), 0);
}

// Claim: the norm is over all accumulators of both types, and shows what is not finite.
TEST(StageOptimizer, NormIsOverAllAccumulators) {
  TwoTensors stage;
  const StageOptimizer optimizer(stage, {});
  long double sum = 0;
  for (const float x : stage.bias_gradient()) sum += static_cast<long double>(x) * x;
  for (const double x : stage.matrix_gradient()) sum += static_cast<long double>(x) * x;
  EXPECT_NEAR(optimizer.squared_norm() / static_cast<double>(sum), 1, 1e-13);
  stage.bias_gradient()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(optimizer.squared_norm()));
}

// Claim: the root that the pass over the blocks leaves is the root of the state computed anew. A single bit
// of a weight or a moment changes it, in the first block and in the last one.
TEST(StageOptimizer, RootIsOfWeightsAndMoments) {
  TwoTensors stage;
  StageOptimizer optimizer(stage, {});
  std::set<std::uint64_t> roots = {optimizer.root()};
  apply(optimizer, kStep);
  const std::uint64_t after = optimizer.root();
  EXPECT_TRUE(roots.insert(after).second);
  optimizer.state_changed();
  EXPECT_EQ(optimizer.root(), after);
  const auto first = std::get<std::span<float>>(optimizer.first_moment(0));
  const auto second = std::get<std::span<double>>(optimizer.second_moment(1));
  const auto changed = [&](auto& number) {
    const auto before = number;
    number = std::nextafter(number, static_cast<decltype(number + 0)>(100));
    optimizer.state_changed();
    EXPECT_TRUE(roots.insert(optimizer.root()).second);
    number = before;
  };
  changed(stage.bias()[0]);
  changed(stage.matrix()[stage.matrix().size() - 1]);
  changed(first[4]);
  changed(second[0]);
  changed(second[second.size() - 1]);
  optimizer.state_changed();
  EXPECT_EQ(optimizer.root(), after);
}

// Claim: peers with other instruction sets, and threads with other modes, come to the same root.
TEST(StageOptimizer, PeersAgreeOnTheRoot) {
  const auto root_of = [](kernels::Isa isa) {
    TwoTensors stage;
    StageOptimizer optimizer(stage, {}, isa);
    apply(optimizer, kStep);
    for (float& x : stage.bias_gradient()) x = 1e-30F;  // its square is a denormal number
    apply(optimizer, {.step = 5, .rate = 0.02, .gradient_scale = 1});
    return optimizer.root();
  };
  const std::uint64_t right = root_of(kernels::Isa::kScalar);
  for (const kernels::Isa isa : kernels::kAllIsas) {
    if (!kernels::supported(isa)) continue;
    EXPECT_EQ(root_of(isa), right) << kernels::name(isa);
  }
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);  // denormal numbers become zero
  const std::uint64_t flushed = root_of(kernels::best_isa());
  _mm_setcsr(before);
  EXPECT_EQ(flushed, right);
}

// Claim: a step that is given up leaves weights and moments as they were.
TEST(StageOptimizer, GivenUp) {
  TwoTensors stage;
  StageOptimizer optimizer(stage, {});
  const std::uint64_t before = optimizer.root();
  optimizer.clear_gradients();
  EXPECT_EQ(optimizer.squared_norm(), 0);
  optimizer.state_changed();
  EXPECT_EQ(optimizer.root(), before);
}

// Claim: misuse stops the program: a block without a step, a step within a step, a root of half a step.
TEST(StageOptimizerDeathTest, Misuse) {
  TwoTensors stage;
  StageOptimizer optimizer(stage, {});
  EXPECT_DEATH(optimizer.apply_next(), "step_");
  optimizer.begin_step(kStep);
  EXPECT_DEATH(optimizer.begin_step(kStep), "step_");
  EXPECT_TRUE(optimizer.apply_next());
  EXPECT_DEATH((void)optimizer.root(), "step_");
  EXPECT_DEATH(optimizer.clear_gradients(), "step_");
  EXPECT_DEATH(optimizer.state_changed(), "step_");
}

// Claim: a toy model learns a text that repeats itself: its loss falls to a fifth.
TEST(StageOptimizer, TrainsAToy) {
  const ToyShape shape{.vocabulary = 5, .context = 8, .width = 8, .hidden = 16, .layers = 2};
  const auto stage = make_toy_stage(shape, {.first = 0, .last = 2, .layers = 2}, 3);
  StageOptimizer optimizer(*stage, {});
  const std::vector<TokenNumber> tokens = {0, 1, 2, 3, 4, 0, 1, 2};
  const std::vector<TokenNumber> targets = {1, 2, 3, 4, 0, 1, 2, 3};
  double first = 0;
  double loss = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    const auto task =
        *stage->begin({.windows = 1, .context = 8, .tokens = tokens, .targets = targets}, Keep::kLayerInputs);
    while (*task->forward_next()) continue;
    EXPECT_TRUE(task->begin_backward({}).ok());
    while (*task->backward_next()) continue;
    while (*task->add_next()) continue;
    loss = task->loss().loss / 8;
    if (step == 0) first = loss;
    const double norm = std::sqrt(optimizer.squared_norm()) / 8;
    apply(optimizer, {.step = step, .rate = 0.02, .gradient_scale = exact::clip_factor(norm, 1) / 8});
  }
  EXPECT_LT(loss, first / 5);
}

}  // namespace
}  // namespace gossamer::pipeline
