// SPDX-License-Identifier: Apache-2.0
//
// The plain C++ of dense_update.h: the reference, and the last elements of a tensor that fill no vector.
// Inside src/exact only. Thread rule: any thread.
#pragma once

#include <array>
#include <cmath>

#include "exact/dense_update.h"

namespace gossamer::exact {

template <class T>
void adamw_element(const AdamWTensor<T>& t, const AdamWFactors<T>& f, std::size_t i) {
  const T g = f.gradient_scale * t.gradients[i];
  const T first = t.first[i] + f.one_minus_beta1 * (g - t.first[i]);
  const T second = f.beta2 * t.second[i] + (f.one_minus_beta2 * g) * g;
  const T move = (f.step_size * first) / (std::sqrt(second) / f.root_bias2 + f.epsilon);
  t.first[i] = first;
  t.second[i] = second;
  t.weights[i] = f.weight_scale * t.weights[i] - move;
}

// The end of a sum whose lanes hold the elements up to `from`, a multiple of kSumLanes.
template <class T>
double finish_squared_sum(std::array<double, kSumLanes> sums, const T* x, std::size_t from, std::size_t n) {
  for (std::size_t i = from; i < n; ++i) {
    const auto wide = static_cast<double>(x[i]);
    sums[i % kSumLanes] += wide * wide;
  }
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

}  // namespace gossamer::exact
