// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/lm_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::pipeline {
namespace {

StageCut whole(const LmShape& shape) { return {.first = 0, .last = shape.layers, .layers = shape.layers}; }

LmShape preset(std::string_view name) {
  for (const LmPreset& one : kLmPresets) {
    if (one.name == name) return one.shape;
  }
  ADD_FAILURE() << name;
  return {};
}

// Claim: GPT-2 small has 124,439,808 parameters with its vocabulary, as its authors' model has, and a head
// beside.
TEST(LmShape, GptTwoHasItsParameters) {
  LmShape shape = preset("gpt2-small");
  shape.vocabulary = 50'257;
  const std::uint64_t head = std::uint64_t{50'257} * 768;
  EXPECT_EQ(lm_parameters(shape, whole(shape)), 124'439'808U + head);
}

// Claim: a layer of swarm-1b has 12 width^2 parameters and two scales.
TEST(LmShape, LayerOfSwarm) {
  const LmShape shape = preset("swarm-1b");
  EXPECT_EQ(lm_parameters(shape, {.first = 1, .last = 2, .layers = 4}), 12ULL * 4096 * 4096 + 2ULL * 4096);
}

// Claim: all variants have different names within a model, and each cut has its tensors of the whole model,
// with the same first weights to the bit.
TEST(LmShape, EveryCutHasTheSameFirstWeights) {
  for (const LmActivation activation : {LmActivation::kGelu, LmActivation::kSwiGlu}) {
    for (const LmBiases biases : {LmBiases::kNone, LmBiases::kAllButKey, LmBiases::kAll}) {
      const LmShape shape{.vocabulary = 13,
                          .context = 6,
                          .width = 8,
                          .heads = 2,
                          .hidden = 12,
                          .layers = 3,
                          .activation = activation,
                          .norm = biases == LmBiases::kNone ? LmNorm::kRms : LmNorm::kLayer,
                          .biases = biases};
      const auto weights = [&](const StageCut& cut, std::map<std::string, std::vector<double>>& into) {
        for (const LmTensor& tensor : lm_tensors(shape, cut)) {
          std::vector<double> numbers(tensor.size());
          fill_first_weights(tensor, 5, std::span<double>(numbers));
          EXPECT_TRUE(into.emplace(tensor.name, numbers).second) << tensor.name;
        }
      };
      std::map<std::string, std::vector<double>> one, cut;
      weights(whole(shape), one);
      weights({.first = 0, .last = 1, .layers = 3}, cut);
      weights({.first = 1, .last = 3, .layers = 3}, cut);
      EXPECT_EQ(one, cut);
      std::set<std::pair<std::uint32_t, std::uint32_t>> streams;
      for (const LmTensor& tensor : lm_tensors(shape, whole(shape)))
        EXPECT_TRUE(streams.emplace(tensor.layer, tensor.number).second)
            << tensor.name << ": two tensors share a random stream";
    }
  }
}

// Claim: weights begin with the deviations that the header names; scales with 1, biases with 0.
TEST(LmShape, FirstWeightsHaveTheirDeviations) {
  const LmShape shape{.vocabulary = 50, .layers = 2, .applied = 2};
  for (const LmTensor& tensor : lm_tensors(shape, whole(shape))) {
    std::vector<float> numbers(tensor.size());
    fill_first_weights(tensor, 6, std::span<float>(numbers));
    double squares = 0;
    for (const float x : numbers) squares += static_cast<double>(x) * static_cast<double>(x);
    const double deviation = std::sqrt(squares / static_cast<double>(numbers.size()));
    const bool added = tensor.name.ends_with("attention.out") || tensor.name.ends_with("mlp.out");
    const bool scale = tensor.name.ends_with("scale");
    double right = 0.02;
    if (tensor.shape.size() == 1) right = scale ? 1 : 0;
    if (added) right = 0.02 / std::sqrt(2.0 * 2 * 2);
    EXPECT_NEAR(deviation, right, 0.05 * right) << tensor.name;
  }
}

// Claim: a shape that no model has is refused, and its key named.
TEST(LmShape, RefusesOthers) {
  EXPECT_TRUE(check_shape({}).ok());
  EXPECT_EQ(check_shape({.width = 0}).error().where, "model.width");
  EXPECT_EQ(check_shape({.layers = 0}).error().where, "model.layers");
  EXPECT_EQ(check_shape({.width = 128, .heads = 3}).error().where, "model.heads");
  EXPECT_EQ(check_shape({.width = 12, .heads = 4}).error().where, "model.heads");  // 3 columns a head
}

}  // namespace
}  // namespace gossamer::pipeline
