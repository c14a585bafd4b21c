// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/lm_activations.h"

#include <algorithm>

namespace gossamer::pipeline {
namespace {

// Small tensors have a part of the whole: angles, statistics, gradients of scales.
constexpr std::uint64_t kMargin = 32;
// Blocks that attention takes for its threads, whatever the microbatch.
constexpr std::uint64_t kBlocks = std::uint64_t{1} << 20U;

// The sizes of a microbatch. A row has a number for each token, in the type of layers.
struct Sizes {
  Sizes(const LmShape& shape, Precision precision, std::uint64_t microbatch_tokens)
      : bf16(precision == Precision::kBf16),
        rms(shape.norm == LmNorm::kRms),
        swiglu(shape.activation == LmActivation::kSwiGlu),
        rotary(shape.positions == LmPositions::kRotary),
        biases(shape.biases != LmBiases::kNone),
        tokens(microbatch_tokens),
        wide(wide_number_bytes(precision)),
        row(microbatch_tokens * layer_number_bytes(precision)),
        width(shape.width),
        hidden(shape.hidden),
        heads(shape.heads),
        vocabulary(shape.vocabulary),
        pieces(std::uint64_t{shape.layers} * shape.applied) {}

  bool bf16, rms, swiglu, rotary, biases;
  std::uint64_t tokens, wide, row, width, hidden, heads, vocabulary, pieces;

  // Columns of `width` that a norm keeps beside its input and output. RMS is computed in float.
  [[nodiscard]] std::uint64_t norm_columns() const {
    if (!rms) return 0;
    return bf16 ? 3 : 1;
  }
  // The numbers of a norm for each token.
  [[nodiscard]] std::uint64_t norm_statistics() const { return rms ? tokens * wide : 2 * row; }
  // Scores of some tokens and their likelihoods, in the wide type.
  [[nodiscard]] std::uint64_t scoring() const {
    const std::uint64_t at_once = std::max<std::uint64_t>(1, kScoresAtOnce / vocabulary);
    return 2 * wide * vocabulary * std::min(tokens, at_once);
  }
  // Products in bf16 are made in that type, and changed to float before they are added.
  [[nodiscard]] std::uint64_t product(std::uint64_t outputs, std::uint64_t inputs) const {
    return bf16 ? 6 * outputs * inputs : 0;
  }
  // Likewise the gradients of a bias.
  [[nodiscard]] std::uint64_t bias_sum(std::uint64_t outputs) const {
    return bf16 && biases ? 4 * tokens * outputs : 0;
  }
  // Tokens and targets as torch numbers them.
  [[nodiscard]] std::uint64_t numbers() const { return 2 * 8 * tokens; }
};

// The backward pass of a layer takes this beside its graph.
std::uint64_t layer_backward_bytes(const Sizes& sizes) {
  const std::uint64_t hiddens = (sizes.swiglu ? 3 : 2) * sizes.hidden;
  const std::uint64_t widths = (sizes.bf16 ? 9 : 5) + (sizes.rotary ? 2 : 0);
  const std::uint64_t attention =
      sizes.row * widths * sizes.width + 2 * sizes.tokens * sizes.heads * sizes.wide;
  return std::max(sizes.row * hiddens, attention);
}

// The most that the head takes beside its input: scoring, its backward pass, its product.
std::uint64_t head_peak_bytes(const Sizes& sizes, std::uint64_t graph) {
  const std::uint64_t normed = sizes.row * sizes.width;
  const std::uint64_t norm_backward = normed * (sizes.rms ? (sizes.bf16 ? 9 : 4) : 1);
  const std::uint64_t work =
      std::max({sizes.scoring(), norm_backward, sizes.product(sizes.vocabulary, sizes.width)});
  return sizes.row * sizes.vocabulary + 2 * normed + graph + work;
}

// The most that the backward pass of a layer takes beside its input.
std::uint64_t layer_peak_bytes(const Sizes& sizes, std::uint64_t graph) {
  const std::uint64_t gradient = sizes.row * sizes.width;
  const std::uint64_t waiting = sizes.row * (8 * sizes.width + (sizes.swiglu ? 3 : 2) * sizes.hidden);
  const std::uint64_t outputs = std::max(3 * sizes.width, sizes.hidden);
  const std::uint64_t adding = std::max(sizes.product(outputs, sizes.width), sizes.bias_sum(outputs));
  return gradient + std::max(graph + gradient + layer_backward_bytes(sizes), waiting + adding);
}

}  // namespace

std::uint64_t layer_number_bytes(Precision precision) {
  return precision == Precision::kBf16 ? 2 : wide_number_bytes(precision);
}

std::uint64_t wide_number_bytes(Precision precision) { return precision == Precision::kF64 ? 8 : 4; }

std::uint64_t layer_graph_bytes(const LmShape& shape, Precision precision, std::uint64_t tokens) {
  const Sizes sizes(shape, precision, tokens);
  // Both norms' outputs, query, key and value, what attention gives, and the sum with it. RMS in bf16 keeps
  // this sum as float alone.
  std::uint64_t columns = (sizes.rms && sizes.bf16 ? 6 : 7) * sizes.width;
  columns += 2 * sizes.norm_columns() * sizes.width;
  // Query and key that are turned, and the result of attention in another order.
  if (sizes.rotary) columns += 3 * sizes.width;
  columns += (sizes.swiglu ? 4 : 2) * sizes.hidden;
  return sizes.row * columns + 2 * sizes.norm_statistics() + tokens * sizes.heads * sizes.wide;
}

std::uint64_t head_graph_bytes(const LmShape& shape, Precision precision, std::uint64_t tokens) {
  const Sizes sizes(shape, precision, tokens);
  return sizes.row * sizes.norm_columns() * sizes.width + sizes.norm_statistics();
}

std::uint64_t training_peak_bytes(const LmShape& shape, Precision precision, std::uint64_t tokens,
                                  Keep keep) {
  const Sizes sizes(shape, precision, tokens);
  const std::uint64_t graph = layer_graph_bytes(shape, precision, tokens);
  // Before its backward pass a task has the inputs of all layers again, also one that kept its own alone.
  const std::uint64_t inputs = sizes.row * sizes.width * (sizes.pieces + 1);
  const std::uint64_t head = head_peak_bytes(sizes, head_graph_bytes(shape, precision, tokens));
  const std::uint64_t layer = layer_peak_bytes(sizes, graph);
  const std::uint64_t kept = sizes.numbers() + inputs + (keep == Keep::kAll ? (sizes.pieces - 1) * graph : 0);
  const std::uint64_t peak = kept + std::max(layer, head + (keep == Keep::kAll ? graph : 0));
  return peak + peak / kMargin + kBlocks;
}

}  // namespace gossamer::pipeline
