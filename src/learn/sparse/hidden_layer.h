// SPDX-License-Identifier: Apache-2.0
//
// HiddenLayer: the network's forward pass up to the last hidden vector, as prediction uses it (no dropout).
//
// Borrows the network and kernels. Thread rule: const, any number of threads while nobody trains.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse {

class HiddenLayer {
 public:
  HiddenLayer(const Network& network, kernels::Activation activation, const kernels::Kernels& kernels)
      : network_(network), activation_(activation), kernels_(kernels) {}

  // Values per row of output: the last hidden layer padded with zeros to the stride of the output's rows.
  [[nodiscard]] std::size_t stride() const { return network_.output.stride(); }

  // One sample; out is [stride()]. Requires feature indices below the network's. Dense layers, if any, take a
  // buffer for each call.
  void forward(const data::SparseRow& features, float* out) const;
  // All rows; out is [rows][stride()].
  void forward(const data::SparseRows& features, std::span<float> out) const;

 private:
  void activate(float* values, std::size_t n) const;
  // out = activation(weights in + bias), zeros up to the stride.
  void forward(const DenseLayer& layer, const float* in, float* out) const;

  const Network& network_;
  kernels::Activation activation_;
  const kernels::Kernels& kernels_;
};

}  // namespace gossamer::sparse
