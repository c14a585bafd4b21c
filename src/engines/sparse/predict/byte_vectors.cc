// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/byte_vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

// Lengths are computed in double and rounded to f32 once or twice. This factor covers the rounding.
constexpr double kEnlarged = 1 + 0x1p-20;
// For a smaller largest element, 1 / scale would leave the range of f32. Such vectors are rounded to 0.
constexpr float kSmallest = 1e-30F;

struct Lengths {
  double exact = 0;
  double rounded = 0;
  double difference = 0;

  void add(float x, float y) {
    const auto a = static_cast<double>(x);
    const auto b = static_cast<double>(y);
    exact += a * a;
    rounded += b * b;
    difference += (a - b) * (a - b);
  }
  [[nodiscard]] float norm() const {
    return static_cast<float>(std::sqrt(std::max(exact, rounded)) * kEnlarged);
  }
  [[nodiscard]] float error(float share) const {
    return static_cast<float>(std::sqrt(difference) * kEnlarged) + share * norm();
  }
};

float largest(std::span<const float> x) {
  float most = 0;
  for (const float v : x) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace

// Twice the error bound. A sum of n products errs by n roundings of 2^-24 at most, relative to the product of
// the lengths. (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1.) The bound
// itself takes fewer than 16 roundings.
float rounding_share(std::size_t width) { return static_cast<float>(width + 16) * 0x1p-23F; }

ByteScale round_row(std::span<const float> row, std::span<std::int8_t> out) {
  CHECK(row.size() == out.size(), row.size(), out.size());
  std::fill(out.begin(), out.end(), std::int8_t{0});
  if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) {
    return {.error = std::numeric_limits<float>::infinity()};
  }
  const float most = largest(row);
  const float scale = most > kSmallest ? most / 127 : 0;
  const float inverse = scale > 0 ? 1 / scale : 0;
  ByteScale result{.scale = scale};
  Lengths lengths;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int rounded = std::clamp(static_cast<int>(std::nearbyint(row[i] * inverse)), -127, 127);
    out[i] = static_cast<std::int8_t>(rounded);
    result.sum += rounded;
    lengths.add(row[i], scale * static_cast<float>(rounded));
  }
  result.norm = lengths.norm();
  result.error = lengths.error(rounding_share(row.size()));
  return result;
}

ByteScale round_query(std::span<const float> query, std::int32_t zero, std::span<std::uint8_t> out) {
  CHECK(query.size() == out.size(), query.size(), out.size());
  const float most = largest(query);
  const float scale = most > kSmallest ? most / static_cast<float>(zero == 0 ? 255 : 127) : 0;
  const float inverse = scale > 0 ? 1 / scale : 0;
  ByteScale result{.scale = scale};
  Lengths lengths;
  for (std::size_t i = 0; i < query.size(); ++i) {
    const int rounded = std::clamp(static_cast<int>(std::nearbyint(query[i] * inverse)) + zero, 0, 255);
    out[i] = static_cast<std::uint8_t>(rounded);
    result.sum += rounded;
    lengths.add(query[i], scale * static_cast<float>(rounded - zero));
  }
  result.norm = lengths.norm();
  result.error = lengths.error(0);  // the row's error has room for both
  return result;
}

}  // namespace gossamer::sparse_engine
