// SPDX-License-Identifier: Apache-2.0
//
// The numbers of one optimizer step: learning rate, clipping, bias corrections. Every peer computes them for
// itself from the step's number, norm and tokens, so they have the same bits on every CPU.
//
// Requires the modes of floating_modes.h. Thread rule: any thread.
#pragma once

#include <cstdint>

#include "exact/dense_update.h"

namespace gossamer::exact {

enum class RateShape { kConstant, kLinear, kCosine };

// The learning rate over the steps of a run. It rises to `peak` in `warmup` steps, then falls to
// floor_share * peak at the last step, or stays.
struct RateSchedule {
  RateShape shape = RateShape::kCosine;
  double peak = 0;
  std::uint64_t warmup = 0;
  std::uint64_t steps = 1;  // of the run, with the warm-up; at least 1
  double floor_share = 0;   // in [0, 1]
};

// Steps count from 0. With w = warmup and p = (step - w) / max(1, steps - 1 - w), at most 1:
//   step < w:   peak * (step + 1) / (w + 1)
//   kConstant:  peak
//   kLinear:    peak * (1 - (1 - floor_share) * p)
//   kCosine:    peak * (floor_share + (1 - floor_share) * (1 + cos(pi p)) / 2)
// (Loshchilov and Hutter, "SGDR", 2017, equation 5, without restarts.)
[[nodiscard]] double learning_rate(const RateSchedule& schedule, std::uint64_t step);

// min(1, limit / (norm + 1e-6)), as clip_grad_norm_ of PyTorch; 1 where `limit` is 0. Requires norm >= 0,
// finite.
[[nodiscard]] double clip_factor(double norm, double limit);

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

// What one step does with its summed gradients.
struct StepNumbers {
  std::uint64_t step = 0;     // counts from 0
  double rate = 0;            // learning_rate()
  double gradient_scale = 1;  // clip factor / tokens
};

// Each factor is computed in double and rounded to T once.
template <class T>
[[nodiscard]] AdamWFactors<T> adamw_factors(const AdamWOptions& options, const StepNumbers& numbers);

template <>
[[nodiscard]] AdamWFactors<float> adamw_factors<float>(const AdamWOptions& options,
                                                       const StepNumbers& numbers);
template <>
[[nodiscard]] AdamWFactors<double> adamw_factors<double>(const AdamWOptions& options,
                                                         const StepNumbers& numbers);

}  // namespace gossamer::exact
