// SPDX-License-Identifier: Apache-2.0
//
// The module as the program opens it: this test neither includes nor links libtorch.
#include "engines/pipeline/torch/torch_module.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/pipeline/stage/stage_optimizer.h"
#include "host/posix/module.h"

namespace gossamer::pipeline {
namespace {

const TorchModule* the_module() {
  const auto symbol = host::open_module(TORCH_MODULE, kTorchModuleSymbol);
  EXPECT_TRUE(symbol.ok()) << symbol.error().message();
  return symbol.ok() ? static_cast<const TorchModule*>(*symbol) : nullptr;
}

// Claim: the module opens, is of this version, and names that of libtorch.
TEST(TorchModule, Opens) {
  const TorchModule* module = the_module();
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->version, kTorchModuleVersion);
  EXPECT_EQ(std::string(module->torch_version).substr(0, 2), "2.");
}

// Claim: a stage of the module trains: its loss on a text falls to a third, with this program's optimizer
// over the module's memory. Tensors have the first weights that every process makes for itself.
TEST(TorchModule, Trains) {
  const TorchModule* module = the_module();
  ASSERT_NE(module, nullptr);
  const LmShape shape{.vocabulary = 11, .context = 8, .width = 16, .heads = 2, .hidden = 32, .layers = 2};
  const StageCut cut{.first = 0, .last = 2, .layers = 2};
  const auto stage = module->make_stage({.shape = shape, .cut = cut, .seed = 4});
  ASSERT_TRUE(stage.ok());
  const std::vector<LmTensor> tensors = lm_tensors(shape, cut);
  ASSERT_EQ((*stage)->tensors().size(), tensors.size());
  std::vector<float> first(tensors[0].size());
  fill_first_weights(tensors[0], 4, std::span<float>(first));
  const auto weights = std::get<std::span<float>>((*stage)->tensors()[0].weights);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), weights.begin(), weights.end()));

  const std::vector<TokenNumber> tokens = {1, 2, 3, 5, 8, 2, 10, 1};
  const std::vector<TokenNumber> targets = {2, 3, 5, 8, 2, 10, 1, 0};
  StageOptimizer optimizer(**stage, {});
  double first_loss = 0;
  double loss = 0;
  for (std::uint64_t step = 0; step < 60; ++step) {
    {
      const auto task =
          *(*stage)->begin({.windows = 1, .context = 8, .tokens = tokens, .targets = targets}, Keep::kAll);
      while (*task->forward_next()) continue;
      ASSERT_TRUE(task->begin_backward({}).ok());
      while (*task->backward_next()) continue;
      while (*task->add_next()) continue;
      loss = task->loss().loss;
    }
    if (step == 0) first_loss = loss;
    optimizer.begin_step({.step = step, .rate = 0.01, .gradient_scale = 1.0 / 8});
    while (optimizer.apply_next()) continue;
    ASSERT_TRUE((*stage)->weights_changed().ok());
  }
  EXPECT_NEAR(first_loss / 8, std::log(11.0), 0.3);
  EXPECT_LT(loss, first_loss / 3);
}

}  // namespace
}  // namespace gossamer::pipeline
