// SPDX-License-Identifier: Apache-2.0
//
// HiddenActivation: turns the input of a hidden layer into its output in training: the activation, then
// dropout. It is the same for all hidden layers.
//
// Thread rule: const, concurrently on different samples. Owner: the classes that compute layers; a plain
// value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/batch_state.h"

namespace gossamer::sparse {

struct HiddenOptions {
  kernels::Activation activation = kernels::Activation::kRelu;
  double dropout = 0;  // of hidden units, in [0, 1); kept ones are scaled by 1 / (1 - dropout)
  std::uint64_t seed = 1;
};

// One sample's vector of one hidden layer, counted from 0.
struct HiddenRow {
  std::size_t layer;
  std::size_t sample;  // below 2^16
};

// Dropout in units of 2^-16: draws a sample's mask, and has the scale that keeps the mean.
class DropoutMask {
 public:
  explicit DropoutMask(const HiddenOptions& options);

  [[nodiscard]] bool active() const { return drop_below_ > 0; }
  [[nodiscard]] float scale() const { return scale_; }
  // Sets kept[i], for column first + i, to 1 with probability 1 - dropout, else to 0. The same for the same
  // seed, step, row and column. Both `first` and n are even.
  void draw(StepNumber step, HiddenRow row, std::size_t first, std::span<std::uint8_t> kept) const;

 private:
  std::uint64_t seed_;
  std::uint32_t drop_below_;
  float scale_;
};

class HiddenActivation {
 public:
  HiddenActivation(const HiddenOptions& options, const kernels::Kernels& kernels)
      : activation_(static_cast<std::size_t>(options.activation)), dropout_(options), kernels_(kernels) {}

  // Both work on the layer's own columns. forward(): y of the row holds the layer's input and becomes the
  // activation's output; h and kept are set.
  void forward(StepNumber step, HiddenRow row, LayerState& layer) const;
  // backward(): dh of the sample, the gradient by h, becomes the gradient by the layer's input.
  void backward(std::size_t sample, LayerState& layer) const;

 private:
  std::size_t activation_;
  DropoutMask dropout_;
  const kernels::Kernels& kernels_;
};

}  // namespace gossamer::sparse
