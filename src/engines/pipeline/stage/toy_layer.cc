// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/stage/toy_layer.h"

#include <algorithm>
#include <utility>

namespace gossamer::pipeline {
namespace {

template <class T>
std::span<T> toy_row(std::span<T> matrix, std::size_t row, std::size_t width) {
  return matrix.subspan(row * width, width);
}
std::span<const double> toy_row(const std::vector<double>& matrix, std::size_t row, std::size_t width) {
  return toy_row(std::span(matrix), row, width);
}
std::span<double> toy_row(std::vector<double>& matrix, std::size_t row, std::size_t width) {
  return toy_row(std::span(matrix), row, width);
}

}  // namespace

void toy_multiply(std::span<const double> w, std::span<const double> x, std::span<double> y) {
  for (std::size_t r = 0; r < y.size(); ++r) {
    double sum = y[r];
    for (std::size_t c = 0; c < x.size(); ++c) sum += w[r * x.size() + c] * x[c];
    y[r] = sum;
  }
}

void toy_multiply_transposed(std::span<const double> w, std::span<const double> x, std::span<double> y) {
  for (std::size_t r = 0; r < x.size(); ++r) {
    for (std::size_t c = 0; c < y.size(); ++c) y[c] += w[r * y.size() + c] * x[r];
  }
}

void toy_add_product(std::span<const double> y, std::span<const double> x, std::span<double> accumulator) {
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t c = 0; c < x.size(); ++c) accumulator[r * x.size() + c] += y[r] * x[c];
  }
}

ToyLayerValues ToyLayer::values(std::span<const double> input) const {
  const std::size_t width = shape_.width;
  const std::size_t tokens = input.size() / width;
  ToyLayerValues v{.means = std::vector<double>(input.size()),
                   .mixed = {input.begin(), input.end()},
                   .hidden = std::vector<double>(tokens * shape_.hidden)};
  std::vector<double> sum(width);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t before = t % context_;
    if (before == 0) std::ranges::fill(sum, 0);
    const auto mean = toy_row(v.means, t, width);
    for (std::size_t i = 0; i < width; ++i) {
      sum[i] += input[t * width + i];
      mean[i] = sum[i] / static_cast<double>(before + 1);
    }
    toy_multiply(weights_.mix, mean, toy_row(v.mixed, t, width));
    const auto hidden = toy_row(v.hidden, t, shape_.hidden);
    toy_multiply(weights_.in, toy_row(v.mixed, t, width), hidden);
    for (double& h : hidden) h = std::max(h, 0.0);
  }
  return v;
}

std::vector<double> ToyLayer::output(const ToyLayerValues& values) const {
  std::vector<double> y = values.mixed;
  for (std::size_t t = 0; t < y.size() / shape_.width; ++t)
    toy_multiply(weights_.out, toy_row(values.hidden, t, shape_.hidden), toy_row(y, t, shape_.width));
  return y;
}

ToyLayerGradients ToyLayer::gradients(const ToyLayerValues& values, std::vector<double> output) const {
  const std::size_t width = shape_.width;
  const std::size_t tokens = output.size() / width;
  ToyLayerGradients g{.output = std::move(output),
                      .hidden = std::vector<double>(values.hidden.size()),
                      .mixed = {},
                      .input = {}};
  g.mixed = g.output;
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto hidden = toy_row(g.hidden, t, shape_.hidden);
    toy_multiply_transposed(weights_.out, toy_row(std::as_const(g.output), t, width), hidden);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      if (values.hidden[t * shape_.hidden + i] <= 0) hidden[i] = 0;
    }
    toy_multiply_transposed(weights_.in, hidden, toy_row(g.mixed, t, width));
  }
  // A token's input is in the means of itself and of all later tokens of its window.
  g.input = g.mixed;
  std::vector<double> later(width);
  for (std::size_t t = tokens; t-- > 0;) {
    const std::size_t before = t % context_;
    if (before + 1 == context_) std::ranges::fill(later, 0);
    std::vector<double> mean(width);
    toy_multiply_transposed(weights_.mix, toy_row(std::as_const(g.mixed), t, width), mean);
    for (std::size_t i = 0; i < width; ++i) {
      later[i] += mean[i] / static_cast<double>(before + 1);
      g.input[t * width + i] += later[i];
    }
  }
  return g;
}

void ToyLayer::add_products(const ToyLayerValues& values, const ToyLayerGradients& gradients,
                            const ToyLayerTensors& accumulators) const {
  const std::size_t width = shape_.width;
  for (std::size_t t = 0; t < values.means.size() / width; ++t) {
    const auto hidden = toy_row(values.hidden, t, shape_.hidden);
    toy_add_product(toy_row(gradients.output, t, width), hidden, accumulators.out);
    toy_add_product(toy_row(gradients.hidden, t, shape_.hidden), toy_row(values.mixed, t, width),
                    accumulators.in);
    toy_add_product(toy_row(gradients.mixed, t, width), toy_row(values.means, t, width), accumulators.mix);
  }
}

}  // namespace gossamer::pipeline
