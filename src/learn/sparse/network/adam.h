// SPDX-License-Identifier: Apache-2.0
//
// RowOptimizer: lazy Adam for tables of which a step touches few rows (Kingma and Ba, "Adam", 2015, algorithm
// 1). Bias correction goes by the global step. A row that is not active in a step is not visited. What those
// skipped steps do to its moments is a policy, applied in closed form at the row's next update.
//
// In a table of Moments::kBlock, 16 weights of a row (a moment block) share a second moment v and take steps
// of one size:
//   v = beta2 v + (1 - beta2) mean of g^2
//
// The owner calls begin_step() before a step; update() then runs on any worker, each row on one. Thread rule:
// begin_step() alone; the const functions concurrently.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/row_table.h"

namespace gossamer::sparse {

// What skipped steps do to a row. With a gradient of zero in k steps dense Adam would
//   - shrink m by beta1^k and v by beta2^k;
//   - move w by the sum over j of step * m beta1^j / sqrt(v beta2^j).
enum class SkippedSteps {
  kHold,          // nothing: moments are those of the row's own last update ("sparse Adam")
  kDecay,         // m and v shrink, w stays
  kDecayAndMove,  // m and v shrink and w makes its movement, at today's step size, when it is next updated
};

enum class OptimizerKind {
  kAdam,
  kSgd,  // w -= learning rate * gradient: makes the exact gradient visible to tests
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double beta1 = 0.9;    // 0 <= beta1 < 1
  double beta2 = 0.999;  // beta1^2 < beta2 < 1
  double epsilon = 1e-8;
  SkippedSteps skipped = SkippedSteps::kHold;
};

// base^k for any k in constant time, from tables of base^0..base^1023 and base^(1024 j); 0 from 2^20 on.
class PowerTable {
 public:
  explicit PowerTable(double base);
  [[nodiscard]] float power(std::uint64_t k) const {
    return k < kSize * kSize ? low_[k % kSize] * high_[k / kSize] : 0.0F;
  }

 private:
  static constexpr std::size_t kSize = 1024;
  std::array<float, kSize> low_;
  std::array<float, kSize> high_;
};

// A single parameter and its moments, such as a bias.
struct AdamScalar {
  float* w;
  float* m;
  float* v;
};

// What holds of the moments m and v of every number that a RowOptimizer has updated, whatever the gradients
// were. With the gradient g_i of the update i before the last one
//   |m| <= sum (1 - beta1) beta1^i |g_i|        v >= sum (1 - beta2) beta2^i g_i^2
// so by Cauchy and Schwarz, for n updates,
//   m^2 <= v (1 - beta1)^2 / (1 - beta2) (1 + q + ... + q^(n - 1))        q = beta1^2 / beta2
// Skipped steps that shrink both only leave terms out. In a moment block v follows the mean of squares, so
// m^2 may be 16 times that. Roundings of each update make beta1 a little larger and beta2 a little smaller.
// Small squares are lost from v, so a little is added to it. If this q is 1 or more, the bound grows with n
// and ends infinite. An update of moments within the bound gives moments within it.
class MomentBound {
 public:
  // `updates`: the most that the row may have had.
  MomentBound(const OptimizerOptions& options, Moments kind, std::uint64_t updates);
  // Any numbers; a NaN is not possible.
  [[nodiscard]] bool possible(double m, double v) const { return m * m <= ratio_ * (v + lost_); }

 private:
  double ratio_;
  double lost_;
};

class RowOptimizer {
 public:
  explicit RowOptimizer(const OptimizerOptions& options);

  void begin_step(StepNumber step, float learning_rate);

  // Updates `row` of `table` by its gradient [stride] and marks it as updated in this step. Requires moments.
  // Returns the coefficients that the row's own scalars (bias) need for the same update.
  kernels::AdamCoefficients update(const kernels::Kernels& k, RowTable& table, std::uint32_t row,
                                   const float* gradient) const;
  // The same for one number, with both moments.
  void update_scalar(const AdamScalar& scalar, float gradient, const kernels::AdamCoefficients& c) const;

 private:
  [[nodiscard]] kernels::AdamCoefficients coefficients(std::uint64_t skipped) const;

  OptimizerOptions options_;
  PowerTable beta1_powers_;
  PowerTable beta2_powers_;
  PowerTable ratio_powers_;  // (beta1 / sqrt(beta2))^k: how a step without a gradient shrinks
  double ratio_ = 0;
  kernels::AdamCoefficients step_;
  std::uint32_t now_ = 1;  // step + 1
  float learning_rate_ = 0;
};

}  // namespace gossamer::sparse
