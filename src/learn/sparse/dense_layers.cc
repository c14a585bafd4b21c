// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/dense_layers.h"

#include <algorithm>

namespace gossamer::sparse {
namespace {

// Rows of weights that are updated together.
constexpr std::size_t kRows = kernels::kLanes;

}  // namespace

// A node that holds no units of a layer has products that it never uses.
DenseLayers::Layer::Layer(kernels::Isa isa, const DenseLayer& layer, const LayerColumns& out,
                          std::size_t padded)
    : forward(isa, {.depth = layer.weights.stride(),
                    .columns = std::max(out.own.end - out.own.begin, kUnitBlock),
                    .left_stride = layer.weights.stride(),
                    .out_stride = out.stride}),
      backward(isa, {.depth = std::max(out.own.end - out.own.begin, kUnitBlock),
                     .columns = layer.weights.stride(),
                     .left_stride = out.stride,
                     .out_stride = layer.weights.stride()}),
      weight_gradient(isa, {.depth = padded,
                            .columns = layer.weights.stride(),
                            .left_stride = padded,
                            .out_stride = layer.weights.stride()}),
      packed_transposed(forward.packed_size()),
      packed_weights(backward.packed_size()),
      packed_inputs(weight_gradient.packed_size()) {}

DenseLayers::DenseLayers(const Parts& parts, const HiddenOptions& options, Size size)
    : parts_(parts), activation_(options, parts.kernels), padded_(size.padded) {
  std::size_t widest = 0;
  for (std::size_t i = 0; i < parts.network.dense.size(); ++i) {
    const DenseLayer& layer = parts.network.dense[i];
    layers_.emplace_back(
        parts.kernels.isa, layer,
        LayerColumns{.stride = row_stride(parts.network.shape.dense[i]), .own = parts.network.part.units[i]},
        padded_);
    pack(i, {0, layer.weights.rows()});
    widest = std::max(widest, layer.weights.stride());
  }
  if (empty()) return;
  for (int worker = 0; worker < size.workers; ++worker) {
    shares_.push_back(
        {.gradients = AlignedArray<float>(kRows * padded_), .dw = AlignedArray<float>(kRows * widest)});
  }
  ones_ = AlignedArray<float>(padded_);
  std::fill_n(ones_.data(), padded_, 1.0F);
}

void DenseLayers::pack(std::size_t layer, kernels::SampleRange rows) {
  const RowTable& weights = parts_.network.dense[layer].weights;
  Layer& to = layers_[layer];
  to.forward.pack_columns(weights.weights(0), weights.stride(), rows, to.packed_transposed.data());
  to.backward.pack_rows(weights.weights(0), weights.stride(), rows, to.packed_weights.data());
}

void DenseLayers::forward(std::size_t i, StepNumber step, host::Range samples, BatchState& state) {
  if (samples.begin == samples.end) return;
  Layer& layer = layers_[i];
  const LayerState& in = state.layers[i];
  LayerState& out = state.layers[i + 1];
  layer.weight_gradient.pack_rows(in.h.data(), in.stride, {samples.begin, samples.end},
                                  layer.packed_inputs.data());
  if (out.own.begin == out.own.end) return;
  layer.forward.multiply(in.h.data() + samples.begin * in.stride, layer.packed_transposed.data(),
                         out.y.data() + samples.begin * out.stride + out.own.begin,
                         samples.end - samples.begin);
  for (std::size_t sample = samples.begin; sample < samples.end; ++sample) {
    if (sample >= state.samples) {
      std::fill_n(out.h.data() + sample * out.stride, out.stride, 0.0F);
      continue;
    }
    parts_.kernels.add_scaled(out.y.data() + sample * out.stride + out.own.begin,
                              parts_.network.dense[i].bias.data(), 1, out.own.end - out.own.begin);
    activation_.forward(step, {.layer = i + 1, .sample = sample}, out);
  }
}

void DenseLayers::backward(std::size_t i, host::Range samples, BatchState& state) const {
  if (samples.begin == samples.end) return;
  const LayerState& out = state.layers[i + 1];
  LayerState& in = state.layers[i];
  if (out.own.begin == out.own.end) {
    std::fill_n(in.dh.data() + samples.begin * in.stride, (samples.end - samples.begin) * in.stride, 0.0F);
    return;
  }
  layers_[i].backward.multiply(out.dh.data() + samples.begin * out.stride + out.own.begin,
                               layers_[i].packed_weights.data(), in.dh.data() + samples.begin * in.stride,
                               samples.end - samples.begin);
}

void DenseLayers::update_rows(std::size_t layer, std::size_t first, Share& share, const LayerState& outputs) {
  const Layer& products = layers_[layer];
  DenseLayer& parameters = parts_.network.dense[layer];
  parts_.kernels.transpose({.in = outputs.dh.data() + outputs.own.begin + first,
                            .out = share.gradients.data(),
                            .rows = padded_,
                            .columns = kRows,
                            .in_stride = outputs.stride,
                            .out_stride = padded_});
  products.weight_gradient.multiply(share.gradients.data(), products.packed_inputs.data(), share.dw.data(),
                                    kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    const float dbias = parts_.kernels.dot(share.gradients.data() + i * padded_, ones_.data(), padded_);
    const auto coefficients =
        parts_.optimizer.update(parts_.kernels, parameters.weights, static_cast<std::uint32_t>(first + i),
                                share.dw.data() + i * parameters.weights.stride());
    parts_.optimizer.update_scalar(parameters.bias_scalar(first + i), dbias, coefficients);
  }
}

host::Range DenseLayers::blocks_of(std::size_t layer, int worker) const {
  return host::worker_range(parts_.network.dense[layer].weights.rows() / kRows, worker,
                            static_cast<int>(shares_.size()));
}

void DenseLayers::read_weights(int worker) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const host::Range blocks = blocks_of(i, worker);
    pack(i, {blocks.begin * kRows, blocks.end * kRows});
  }
}

void DenseLayers::update(int worker, const BatchState& state) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const host::Range blocks = blocks_of(i, worker);
    for (std::size_t block = blocks.begin; block < blocks.end; ++block) {
      update_rows(i, block * kRows, shares_[static_cast<std::size_t>(worker)], state.layers[i + 1]);
    }
    pack(i, {blocks.begin * kRows, blocks.end * kRows});
  }
}

std::uint64_t DenseLayers::bytes() const {
  std::uint64_t floats = ones_.size();
  for (const Layer& layer : layers_) {
    floats += layer.packed_transposed.size() + layer.packed_weights.size() + layer.packed_inputs.size();
  }
  for (const Share& share : shares_) floats += share.gradients.size() + share.dw.size();
  return floats * sizeof(float);
}

}  // namespace gossamer::sparse
