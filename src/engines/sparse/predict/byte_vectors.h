// SPDX-License-Identifier: Apache-2.0
//
// Vectors rounded to bytes, with lengths that bound the error of their products. They are the "screen" that
// spares row_search.h the exact product with nearly every row.
//
// A row w becomes   w' = scale * bytes,          bytes in -127..127
// A query q becomes q' = scale * (bytes - zero), bytes in 0..255
//
// With N(x) the length of x, Cauchy and Schwarz give
//
//   |q . w - q' . w'| = |(q - q') . w + q' . (w - w')| <= N(q - q') N(w) + N(q') N(w - w')
//
// `norm` and `error` below are these lengths, slightly enlarged. So the bound also holds for products that
// are summed up in f32, in any order, and for its own evaluation in f32 (byte_vectors.cc). The largest
// element sets the scale, so a length's typical error is 0.3 % (queries without negative elements) to 0.6 %.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer::sparse_engine {

struct ByteScale {
  float scale = 0;
  float norm = 0;        // at least the length of the vector, and of the rounded one
  float error = 0;       // at least the length of their difference
  std::int32_t sum = 0;  // of the bytes
};

// Added to the bound: a sum of 65536 products may lose so much below the range of f32.
inline constexpr float kUnderflow = 1e-38F;

// The relative error of a sum of `width` products in f32 is at most this, with room for a few further
// roundings.
[[nodiscard]] float rounding_share(std::size_t width);

// Rounds a row. A row with an element that is not finite gets an infinite error: no bound holds.
// Requires out.size() == row.size().
[[nodiscard]] ByteScale round_row(std::span<const float> row, std::span<std::int8_t> out);

// Rounds a query of finite elements; zero is 0 for queries without negative elements, else 128.
[[nodiscard]] ByteScale round_query(std::span<const float> query, std::int32_t zero,
                                    std::span<std::uint8_t> out);

}  // namespace gossamer::sparse_engine
