// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/lm_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "exact/floating_modes.h"
#include "exact/normal_numbers.h"

namespace gossamer::pipeline {
namespace {

constexpr double kDeviation = 0.02;

// Adds the tensors of a stage one after another.
class LmTensorList {
 public:
  explicit LmTensorList(const LmShape& shape)
      : shape_(shape), added_deviation_(kDeviation / std::sqrt(2.0 * shape.layers * shape.applied)) {}

  void embedding() {
    const std::uint64_t width = shape_.width;
    begin(shape_.layers, "embedding.", 0);
    weight("tokens", {shape_.vocabulary, width});
    if (shape_.positions == LmPositions::kLearned) weight("positions", {shape_.context, width});
  }
  void layer(std::uint32_t k) {
    const std::uint64_t width = shape_.width;
    const bool bias = shape_.biases != LmBiases::kNone;
    begin(k, fmt::format("layers.{}.", k), 0);
    norm("attention.norm.");
    weight("attention.query_key_value", {3 * width, width});
    if (bias) constant("attention.query.bias", width, 0);
    if (shape_.biases == LmBiases::kAll) constant("attention.key.bias", width, 0);
    if (bias) constant("attention.value.bias", width, 0);
    added_weight("attention.out", {width, width});
    if (bias) constant("attention.out.bias", width, 0);
    norm("mlp.norm.");
    if (shape_.activation == LmActivation::kSwiGlu) weight("mlp.gate", {shape_.hidden, width});
    weight("mlp.in", {shape_.hidden, width});
    if (bias) constant("mlp.in.bias", shape_.hidden, 0);
    added_weight("mlp.out", {width, shape_.hidden});
    if (bias) constant("mlp.out.bias", width, 0);
  }
  void head() {
    begin(shape_.layers, "head.", 8);  // after the tensors of the embedding
    norm("norm.");
    weight("out", {shape_.vocabulary, shape_.width});
  }
  [[nodiscard]] std::vector<LmTensor> take() { return std::move(tensors_); }

 private:
  void begin(std::uint32_t layer, std::string prefix, std::uint32_t number) {
    layer_ = layer;
    prefix_ = std::move(prefix);
    number_ = number;
  }
  void add(std::string_view name, std::vector<std::uint64_t> shape, double deviation, double value) {
    tensors_.push_back({.name = fmt::format("{}{}", prefix_, name),
                        .shape = std::move(shape),
                        .deviation = deviation,
                        .value = value,
                        .layer = layer_,
                        .number = number_++});
  }
  void weight(std::string_view name, std::vector<std::uint64_t> shape) {
    add(name, std::move(shape), kDeviation, 0);
  }
  void added_weight(std::string_view name, std::vector<std::uint64_t> shape) {
    add(name, std::move(shape), added_deviation_, 0);
  }
  void constant(std::string_view name, std::uint64_t size, double value) { add(name, {size}, 0, value); }
  void norm(std::string_view name) {
    constant(fmt::format("{}scale", name), shape_.width, 1);
    if (shape_.norm == LmNorm::kLayer && shape_.biases != LmBiases::kNone)
      constant(fmt::format("{}shift", name), shape_.width, 0);
  }

  LmShape shape_;
  double added_deviation_;
  std::uint32_t layer_ = 0;
  std::uint32_t number_ = 0;
  std::string prefix_;
  std::vector<LmTensor> tensors_;
};

Error bad_shape(std::string_view key, std::string got, std::string expected) {
  return {.kind = ErrorKind::kUsage,
          .where = std::string(key),
          .what = "no model has this shape",
          .got = std::move(got),
          .expected = std::move(expected)};
}

}  // namespace

Result<void> check_shape(const LmShape& shape) {
  const std::array<std::pair<std::string_view, std::uint32_t>, 7> sizes = {
      {{"model.vocabulary", shape.vocabulary},
       {"model.context", shape.context},
       {"model.width", shape.width},
       {"model.heads", shape.heads},
       {"model.hidden", shape.hidden},
       {"model.layers", shape.layers},
       {"model.applied", shape.applied}}};
  for (const auto& [key, size] : sizes) {
    if (size == 0) return bad_shape(key, "0", "at least 1");
  }
  if (shape.width % shape.heads != 0 || shape.width / shape.heads % 2 != 0) {
    return bad_shape("model.heads", fmt::format("{} heads for a width of {}", shape.heads, shape.width),
                     "a width that is an even multiple of the heads");
  }
  return {};
}

std::uint64_t LmTensor::size() const {
  std::uint64_t size = 1;
  for (const std::uint64_t n : shape) size *= n;
  return size;
}

std::vector<LmTensor> lm_tensors(const LmShape& shape, const StageCut& cut) {
  const exact::FloatingModes modes;
  CHECK(check_shape(shape).ok() && cut.first < cut.last && cut.last <= cut.layers &&
        cut.layers == shape.layers);
  LmTensorList list(shape);
  if (cut.has_embedding()) list.embedding();
  for (std::uint32_t k = cut.first; k < cut.last; ++k) list.layer(k);
  if (cut.has_head()) list.head();
  return list.take();
}

void fill_first_weights(const LmTensor& tensor, std::uint64_t seed, Numbers out) {
  const exact::FloatingModes modes;
  std::visit(
      [&]<class T>(std::span<T> numbers) {
        CHECK(numbers.size() == tensor.size(), tensor.name, numbers.size());
        if (tensor.deviation == 0) {
          std::ranges::fill(numbers, static_cast<T>(tensor.value));
          return;
        }
        Rng rng(seed, Purpose::kStageInit, tensor.layer, tensor.number);
        exact::fill_normal(rng, tensor.deviation, numbers);
      },
      out);
}

std::uint64_t lm_parameters(const LmShape& shape, const StageCut& cut) {
  std::uint64_t parameters = 0;
  for (const LmTensor& tensor : lm_tensors(shape, cut)) parameters += tensor.size();
  return parameters;
}

}  // namespace gossamer::pipeline
