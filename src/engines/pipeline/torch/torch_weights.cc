// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/torch/torch_weights.h"

#include <fmt/format.h>

#include <utility>

namespace gossamer::pipeline {
namespace {

std::vector<std::int64_t> sizes_of(const LmTensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

}  // namespace

TorchWeights::TorchWeights(const TorchStageOptions& options) : options_(options) {
  const std::vector<LmTensor> tensors = lm_tensors(options.shape, options.cut);
  for (const LmTensor& tensor : tensors) {
    if (wide_type() == at::kDouble) {
      allocate<double>(tensor, options.seed);
    } else {
      allocate<float>(tensor, options.seed);
    }
  }
  refresh();
}

template <class T>
void TorchWeights::allocate(const LmTensor& tensor, std::uint64_t seed) {
  AlignedArray<T> weights(tensor.size());
  AlignedArray<T> sums(tensor.size());
  fill_first_weights(tensor, seed, weights.span());
  tensors_.push_back(
      {.name = tensor.name, .shape = tensor.shape, .weights = weights.span(), .gradients = sums.span()});
  const auto wrapped = [&](AlignedArray<T>& memory) {
    return at::from_blob(memory.data(), sizes_of(tensor), at::TensorOptions().dtype(wide_type()));
  };
  pairs_[tensor.name] = {.weight = wrapped(weights), .sum = wrapped(sums)};
  memory_.emplace_back(std::move(weights));
  memory_.emplace_back(std::move(sums));
}

at::ScalarType TorchWeights::wide_type() const {
  return options_.precision == Precision::kF64 ? at::kDouble : at::kFloat;
}
at::ScalarType TorchWeights::layer_type() const {
  return options_.precision == Precision::kBf16 ? at::kBFloat16 : wide_type();
}

TorchWeights::Pair TorchWeights::pair(const std::string& name) const {
  const auto found = pairs_.find(name);
  return found == pairs_.end() ? Pair{} : found->second;
}

at::Tensor TorchWeights::in_layer_type(const at::Tensor& weight) const {
  return weight.defined() ? weight.to(layer_type()) : weight;
}

TorchLinear TorchWeights::linear(const std::string& name) const {
  const Pair weight = pair(name);
  const Pair bias = pair(name + ".bias");
  TorchLinear linear{
      .weight = in_layer_type(weight.weight), .bias = in_layer_type(bias.weight), .weight_sum = weight.sum};
  if (bias.sum.defined()) linear.bias_sums = {{.sum = bias.sum, .from = 0}};
  return linear;
}

TorchLinear TorchWeights::query_key_value(const std::string& prefix) const {
  const Pair weight = pair(prefix + "query_key_value");
  TorchLinear linear{.weight = in_layer_type(weight.weight), .bias = {}, .weight_sum = weight.sum};
  const std::int64_t width = options_.shape.width;
  if (options_.shape.biases == LmBiases::kNone) return linear;
  linear.bias = at::zeros({3 * width}, linear.weight.options());
  std::int64_t from = 0;
  for (const char* part : {"query", "key", "value"}) {
    const Pair bias = pair(fmt::format("{}{}.bias", prefix, part));
    if (bias.weight.defined()) {
      linear.bias.narrow(0, from, width).copy_(bias.weight);
      linear.bias_sums.push_back({.sum = bias.sum, .from = from});
    }
    from += width;
  }
  return linear;
}

TorchNorm TorchWeights::norm(const std::string& prefix) const {
  const Pair scale = pair(prefix + "scale");
  const Pair shift = pair(prefix + "shift");
  return {.scale = in_layer_type(scale.weight),
          .shift = in_layer_type(shift.weight),
          .scale_sum = scale.sum,
          .shift_sum = shift.sum};
}

void TorchWeights::refresh() {
  // Products that wait have pointers to the layers.
  layers_.resize(options_.cut.last - options_.cut.first);
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const std::string prefix = fmt::format("layers.{}.", options_.cut.first + k);
    layers_[k] = {.attention_norm = norm(prefix + "attention.norm."),
                  .query_key_value = query_key_value(prefix + "attention."),
                  .attention_out = linear(prefix + "attention.out"),
                  .mlp_norm = norm(prefix + "mlp.norm."),
                  .gate = linear(prefix + "mlp.gate"),
                  .in = linear(prefix + "mlp.in"),
                  .out = linear(prefix + "mlp.out")};
  }
  tokens_ = linear("embedding.tokens");
  positions_ = linear("embedding.positions");
  head_norm_ = norm("head.norm.");
  head_ = linear("head.out");
}

}  // namespace gossamer::pipeline
