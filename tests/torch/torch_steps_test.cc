// SPDX-License-Identifier: Apache-2.0
//
// Steps of training beside PyTorch's: tests/golden/torch_steps.json has what a loop in PyTorch computed
// (record.py). Weights and tokens follow the rule of that program.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/torch/torch_module.h"
#include "engines/pipeline/train/lone_trainer.h"
#include "host/posix/module.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "json/read_json.h"
#include "learn/tokens/token_file_writer.h"
#include "learn/tokens/token_windows.h"

namespace gossamer::pipeline {
namespace {

using Json = nlohmann::json;

// Relative to the recorded number, or absolute for a weight below one.
constexpr double kTolerance = 1e-9;

const Json& recorded() {
  static const Json json = [] {
    std::ifstream file(TORCH_STEPS);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return read_json<Json>(text);
  }();
  return json;
}

std::unique_ptr<StageBackend> make_stage(const LmShape& shape, Precision precision) {
  static const auto symbol = host::open_module(TORCH_MODULE, kTorchModuleSymbol);
  EXPECT_TRUE(symbol.ok());
  const auto* module = static_cast<const TorchModule*>(*symbol);
  auto stage = module->make_stage({.shape = shape,
                                   .cut = {.first = 0, .last = shape.layers, .layers = shape.layers},
                                   .precision = precision});
  EXPECT_TRUE(stage.ok());
  return *std::move(stage);
}

template <class Word>
Word word_of(const Json& json, std::initializer_list<std::pair<std::string_view, Word>> words) {
  const auto got = json.get<std::string>();
  for (const auto& [name, word] : words) {
    if (name == got) return word;
  }
  ADD_FAILURE() << "no such word: " << got;
  return words.begin()->second;
}

LmShape shape_of(const Json& json) {
  const auto size = [&](const char* key) { return json.at(key).get<std::uint32_t>(); };
  return {.vocabulary = size("vocabulary"),
          .context = size("context"),
          .width = size("width"),
          .heads = size("heads"),
          .hidden = size("hidden"),
          .layers = size("layers"),
          .applied = size("applied"),
          .activation = word_of<LmActivation>(
              json.at("activation"), {{"gelu", LmActivation::kGelu}, {"swiglu", LmActivation::kSwiGlu}}),
          .norm = word_of<LmNorm>(json.at("norm"), {{"layer", LmNorm::kLayer}, {"rms", LmNorm::kRms}}),
          .positions = word_of<LmPositions>(
              json.at("positions"), {{"learned", LmPositions::kLearned}, {"rotary", LmPositions::kRotary}}),
          .biases = word_of<LmBiases>(
              json.at("biases"),
              {{"none", LmBiases::kNone}, {"no-key", LmBiases::kAllButKey}, {"all", LmBiases::kAll}})};
}

TrainerOptions options_of(const Json& one) {
  const Json& schedule = one.at("schedule");
  const Json& adamw = one.at("adamw");
  using exact::RateShape;
  return {.batch = one.at("windows").get<std::uint64_t>(),
          .microbatch = one.at("microbatch").get<std::uint32_t>(),
          .schedule = {.shape = word_of<RateShape>(schedule.at("shape"), {{"constant", RateShape::kConstant},
                                                                          {"linear", RateShape::kLinear},
                                                                          {"cosine", RateShape::kCosine}}),
                       .peak = schedule.at("peak").get<double>(),
                       .warmup = schedule.at("warmup").get<std::uint64_t>(),
                       .steps = schedule.at("steps").get<std::uint64_t>(),
                       .floor_share = schedule.at("floor").get<double>()},
          .adamw = {.beta1 = adamw.at("beta1").get<double>(),
                    .beta2 = adamw.at("beta2").get<double>(),
                    .epsilon = adamw.at("epsilon").get<double>(),
                    .weight_decay = adamw.at("weight_decay").get<double>()},
          .clip = one.at("clip").get<double>()};
}

std::uint32_t mixed(std::uint32_t number) {
  number = (number ^ (number >> 16U)) * 0x243F6A89U;
  number = (number ^ (number >> 13U)) * 0x85A308D3U;
  return number ^ (number >> 16U);
}

std::uint32_t name_number(std::string_view name) {
  std::uint32_t number = 0;
  for (const char c : name) number = number * 31 + static_cast<std::uint32_t>(c);
  return mixed(number);
}

void set_weights(StageBackend& stage) {
  for (const StageTensor& tensor : stage.tensors()) {
    const std::uint32_t begin = name_number(tensor.name);
    const bool matrix = tensor.shape.size() == 2;
    const double base = tensor.name.ends_with("scale") ? 1 : 0;
    std::visit(
        [&]<class T>(std::span<T> weights) {
          for (std::uint32_t i = 0; i < weights.size(); ++i) {
            const double half = mixed(begin + i) / 4294967296.0 - 0.5;
            weights[i] = static_cast<T>(matrix ? half : half / 4 + base);
          }
        },
        tensor.weights);
  }
  ASSERT_TRUE(stage.weights_changed().ok());
}

std::vector<TokenNumber> text_of(const Json& one, const LmShape& shape) {
  std::vector<TokenNumber> text(one.at("windows").get<std::uint32_t>() * shape.context + 1);
  for (std::uint32_t i = 0; i < text.size(); ++i) text[i] = mixed(i) % shape.vocabulary;
  return text;
}

std::unique_ptr<tokens::TokenFile> file_of(const Json& one, const LmShape& shape) {
  host::SimDisk disk;
  auto writer = tokens::TokenFileWriter::create(disk, "text.tokens", {.vocabulary = shape.vocabulary});
  const std::vector<TokenNumber> text = text_of(one, shape);
  EXPECT_TRUE((*writer)->add(text, text.size()).ok());
  EXPECT_TRUE((*writer)->finish().ok());
  host::SimCompute compute({.workers = 1});
  return *tokens::TokenFile::open(disk, "text.tokens", compute);
}

// The first, a middle and the last weight of each recorded tensor.
void expect_weights(StageBackend& stage, const Json& weights) {
  std::size_t compared = 0;
  for (const StageTensor& tensor : stage.tensors()) {
    if (!weights.contains(tensor.name)) {
      EXPECT_TRUE(tensor.name.ends_with(".key.bias")) << tensor.name;
      continue;
    }
    const auto numbers = std::get<std::span<double>>(tensor.weights);
    const std::array<double, 3> ours = {numbers.front(), numbers[numbers.size() / 2], numbers.back()};
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(ours[i], weights.at(tensor.name).at(i).get<double>(), kTolerance) << tensor.name;
    ++compared;
  }
  EXPECT_EQ(compared, weights.size());
}

// Claim: in double each step has the loss and the norm that PyTorch's own parts compute, and the weights
// after ten steps are the same: for all activations, norms, positions and biases, layers that are applied
// twice, all schedules, with clipping and decay.
TEST(TorchSteps, AreThoseOfPyTorch) {
  ASSERT_TRUE(recorded().is_object()) << TORCH_STEPS;
  EXPECT_EQ(recorded().at("cases").size(), 7U);
  for (const Json& one : recorded().at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const LmShape shape = shape_of(one.at("shape"));
    const auto stage = make_stage(shape, Precision::kF64);
    set_weights(*stage);
    const auto file = file_of(one, shape);
    const auto windows = tokens::TokenWindows::cut(*file, {.context = shape.context, .seed = 1});
    ASSERT_TRUE(windows.ok());
    const TrainerOptions options = options_of(one);
    ASSERT_EQ(windows->windows(), options.batch);
    LoneTrainer trainer(*stage, *windows, options);
    for (StepNumber step; step.value < options.schedule.steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step.value);
      const Result<StepDone> done = trainer.take_step(step);
      ASSERT_TRUE(done.ok());
      const Json& torch = one.at("steps").at(step.value);
      const auto loss = torch.at("loss").get<double>();
      const auto norm = torch.at("norm").get<double>();
      EXPECT_NEAR(done->loss, loss, kTolerance * loss);
      EXPECT_NEAR(done->norm, norm, kTolerance * norm);
    }
    expect_weights(*stage, one.at("weights"));
  }
}

// The gradient of all windows of a recorded case, tensor by tensor.
std::vector<double> gradient(const Json& one, Precision precision) {
  const LmShape shape = shape_of(one.at("shape"));
  const auto stage = make_stage(shape, precision);
  set_weights(*stage);
  const std::vector<TokenNumber> text = text_of(one, shape);
  const std::span all(text);
  const auto task = *stage->begin({.windows = one.at("windows").get<std::uint32_t>(),
                                   .context = shape.context,
                                   .tokens = all.first(all.size() - 1),
                                   .targets = all.last(all.size() - 1)},
                                  Keep::kAll);
  while (*task->forward_next()) continue;
  EXPECT_TRUE(task->begin_backward({}).ok());
  while (*task->backward_next()) continue;
  while (*task->add_next()) continue;
  std::vector<double> gradient;
  for (const StageTensor& tensor : stage->tensors()) {
    std::visit([&](auto part) { gradient.insert(gradient.end(), part.begin(), part.end()); },
               tensor.gradients);
  }
  return gradient;
}

double length(const std::vector<double>& numbers) {
  double squares = 0;
  for (const double x : numbers) squares += x * x;
  return std::sqrt(squares);
}

// Claim: the gradient in f32 differs from that in double, which is PyTorch's, by less than 3e-6 of its
// length, and the one in bf16 by less than 8 %. The weights are large, so layers make more of a rounding.
TEST(TorchSteps, GradientsOfLessPrecisionAreNear) {
  for (const Json& one : recorded().at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const std::vector<double> exact = gradient(one, Precision::kF64);
    const double tokens = one.at("windows").get<double>() * one.at("shape").at("context").get<double>();
    const auto norm = one.at("steps").at(0).at("norm").get<double>();
    EXPECT_NEAR(length(exact) / tokens, norm, kTolerance * norm);
    for (const auto& [precision, share] : {std::pair{Precision::kF32, 3e-6}, {Precision::kBf16, 0.08}}) {
      std::vector<double> difference = gradient(one, precision);
      ASSERT_EQ(difference.size(), exact.size());
      for (std::size_t i = 0; i < exact.size(); ++i) difference[i] -= exact[i];
      EXPECT_LT(length(difference), share * length(exact));
      // Each rounds in its own way.
      EXPECT_GT(length(difference), 0);
    }
  }
}

}  // namespace
}  // namespace gossamer::pipeline
