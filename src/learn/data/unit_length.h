// SPDX-License-Identifier: Apache-2.0
//
// Vectors scaled to length 1, whatever the sizes of their numbers.
//
// Thread rule: a pure function.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace gossamer::data {

// Writes `x` times `factor` to `out`, which may be x's own memory. A float has all digits of usual factors.
// That of a very short vector would be infinite as a float, and that of a very long one would lose digits.
// These stay doubles.
inline void scale_by(std::span<const float> x, double factor, float* out) {
  if (const auto narrow = static_cast<float>(factor); std::isnormal(narrow)) {
    std::ranges::transform(x, out, [narrow](float v) { return v * narrow; });
  } else {
    std::ranges::transform(x, out,
                           [factor](float v) { return static_cast<float>(static_cast<double>(v) * factor); });
  }
}

// Writes `x` scaled to length 1. `squares` is the sum of its squares; a vector of 0 stays so.
inline void to_unit_length(std::span<const float> x, double squares, float* out) {
  scale_by(x, squares > 0 ? 1 / std::sqrt(squares) : 0, out);
}

}  // namespace gossamer::data
