// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of ToyStage's parts for one microbatch: values [tokens, width], rows first, windows one
// after another. Inside this folder only. Thread rule: any thread; the functions write only what they return
// or are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engines/pipeline/stage/stage_backend.h"
#include "engines/pipeline/stage/toy_stage.h"

namespace gossamer::pipeline {

// Weights or their accumulators: mix [width, width], in [hidden, width], out [width, hidden].
struct ToyLayerTensors {
  std::span<double> mix, in, out;
};

// A layer's values between its input and its output.
struct ToyLayerValues {
  std::vector<double> means;   // c
  std::vector<double> mixed;   // a
  std::vector<double> hidden;  // relu(in a), [tokens, hidden]

  [[nodiscard]] std::size_t size() const { return means.size() + mixed.size() + hidden.size(); }
};

// What the products of a layer take beside its values.
struct ToyLayerGradients {
  std::vector<double> output;  // of y
  std::vector<double> hidden;  // of in a
  std::vector<double> mixed;   // of a
  std::vector<double> input;   // of x

  [[nodiscard]] std::size_t size() const {
    return output.size() + hidden.size() + mixed.size() + input.size();
  }
};

class ToyLayer {
 public:
  ToyLayer(const ToyShape& shape, std::uint32_t context, const ToyLayerTensors& weights)
      : shape_(shape), context_(context), weights_(weights) {}

  [[nodiscard]] ToyLayerValues values(std::span<const double> input) const;
  [[nodiscard]] std::vector<double> output(const ToyLayerValues& values) const;
  [[nodiscard]] ToyLayerGradients gradients(const ToyLayerValues& values, std::vector<double> output) const;
  void add_products(const ToyLayerValues& values, const ToyLayerGradients& gradients,
                    const ToyLayerTensors& accumulators) const;

 private:
  ToyShape shape_;
  std::uint32_t context_;  // tokens of each window here
  ToyLayerTensors weights_;
};

// Each adds to what `y` or `accumulator` holds, in rising order of the columns, then of the rows.
// y[r] += sum over c of w[r, c] x[c]
void toy_multiply(std::span<const double> w, std::span<const double> x, std::span<double> y);
// y[c] += sum over r of w[r, c] x[r]
void toy_multiply_transposed(std::span<const double> w, std::span<const double> x, std::span<double> y);
// accumulator[r, c] += y[r] x[c]
void toy_add_product(std::span<const double> y, std::span<const double> x, std::span<double> accumulator);

}  // namespace gossamer::pipeline
