// SPDX-License-Identifier: Apache-2.0
//
// DenseUpdate: what an optimizer does to whole tensors, with the same bits on every CPU. Peers of a stage
// each update their own copy of its weights. The copies stay equal without another word among them, because
// every operation is a multiplication, an addition, a division or a root, rounded once, in the order that is
// written here. One table for each instruction set:
//
//   const DenseUpdate<float>& update = dense_update<float>(kernels::best_isa());
//   update.adamw(tensor, factors);
//
// T is float or double. Sizes are any; pointers need only the alignment of T. Requires the modes of
// floating_modes.h. Thread rule: tables are immutable; the functions write only what their arguments point
// to. Parts of one tensor may be updated on several threads: the bits do not depend on the cut.
#pragma once

#include <cstddef>

#include "kernels/isa.h"

namespace gossamer::exact {

// The numbers of one step of AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019,
// algorithm 2).
template <class T>
struct AdamWFactors {
  T gradient_scale = 1;  // clip factor / tokens of the step
  T weight_scale = 1;    // 1 - rate * weight decay
  T beta2 = 0;
  T one_minus_beta1 = 0;  // given apart: 1 - beta2 loses digits in float
  T one_minus_beta2 = 0;
  T step_size = 0;   // rate / (1 - beta1^t)
  T root_bias2 = 1;  // sqrt(1 - beta2^t)
  T epsilon = 0;
};

// A tensor or a part of it, each array [n].
template <class T>
struct AdamWTensor {
  T* weights;
  T* first;  // moments
  T* second;
  const T* gradients;  // summed over the tokens of the step
  std::size_t n;
};

template <class T>
struct DenseUpdate {
  // For each element, with g = gradient_scale * gradient:
  //   first   = first + one_minus_beta1 * (g - first)
  //   second  = beta2 * second + (one_minus_beta2 * g) * g
  //   weights = weight_scale * weights - (step_size * first) / (sqrt(second) / root_bias2 + epsilon)
  void (*adamw)(const AdamWTensor<T>& tensor, const AdamWFactors<T>& factors);
  // The sum of x[i]^2 in double: kSumLanes sums, of the elements i with equal i % kSumLanes, in rising order
  // of i; then sums[k] += sums[k + half] for half = 8, 4, 2, 1. A NaN or an infinite element shows in the
  // sum.
  double (*squared_sum)(const T* x, std::size_t n);
};

inline constexpr std::size_t kSumLanes = 16;

// Requires supported(isa).
template <class T>
[[nodiscard]] const DenseUpdate<T>& dense_update(kernels::Isa isa);

template <>
[[nodiscard]] const DenseUpdate<float>& dense_update<float>(kernels::Isa isa);
template <>
[[nodiscard]] const DenseUpdate<double>& dense_update<double>(kernels::Isa isa);

}  // namespace gossamer::exact
