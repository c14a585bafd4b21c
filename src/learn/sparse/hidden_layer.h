// SPDX-License-Identifier: Apache-2.0
//
// HiddenLayer: the network's forward pass up to the hidden vector, as prediction uses it (no dropout).
//
// Borrows the network and kernels. Thread rule: const, any number of threads while nobody trains.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernels.h"
#include "learn/data/rows.h"
#include "learn/sparse/network.h"

namespace gossamer::sparse {

class HiddenLayer {
 public:
  HiddenLayer(const Network& network, kernels::Activation activation, const kernels::Kernels& kernels)
      : network_(network), activation_(activation), kernels_(kernels) {}

  // Values per row of output: hidden padded with zeros to network.stride().
  [[nodiscard]] std::size_t stride() const { return network_.stride(); }

  // One sample; out is [stride()]. Requires feature indices below the network's.
  void forward(const data::SparseRow& features, float* out) const;
  // All rows; out is [rows][stride()].
  void forward(const data::SparseRows& features, std::span<float> out) const;

 private:
  const Network& network_;
  kernels::Activation activation_;
  const kernels::Kernels& kernels_;
};

}  // namespace gossamer::sparse
