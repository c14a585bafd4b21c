// SPDX-License-Identifier: Apache-2.0
//
// Kernels: the element-wise and gathering operations of the sparse engine as a table of functions, one table
// per instruction set. Get a table once (kernels_for), keep the reference, call through it:
//
//   const Kernels& k = kernels_for(best_isa());
//   k.add_scaled(z, row, 0.5F, width);
//
// Sizes: every `n` or `width` is a multiple of kLanes; rows are padded with zeros up to it. Pointers need
// only the alignment of their type; 64 bytes is fastest. Unless said otherwise outputs do not overlap inputs.
// The owner of the buffers checks sizes once; the functions do not.
// Accuracy: sums are formed in an order that depends on the ISA, so ISAs agree to rounding. One ISA on the
// same input always gives the same bits. Thread rule: tables are immutable; the functions write only what
// their arguments point to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/isa.h"

namespace gossamer::kernels {

// Rows are padded to a multiple of this many elements.
inline constexpr std::size_t kLanes = 16;

// exp_row: the un-normalised probabilities of one label (row) for all samples of the batch. For b in [0, n):
//   e[b] = exp(clamp(scores[b] + bias - shift[b], -60, 60));  out[b] = e[b];  sums[b] += out[b]
// The sum takes the value as stored (after rounding to bf16), so that the stored row and the sum agree.
// NaN stays NaN. Relative error at most 5e-7 (f32), 2^-8 (bf16). See panel_softmax.md.
struct ExpRow {
  const float* scores;
  float bias;
  const float* shift;
  float* sums;
  std::size_t n;
};

// The numbers of one Adam update of a row (Kingma and Ba, "Adam", 2015, algorithm 1). It first catches up on
// the steps that skipped this row. All products of powers are the caller's (learn/sparse).
struct AdamCoefficients {
  float step_size = 0;       // lr / (1 - beta1^t)
  float inv_sqrt_bias2 = 1;  // 1 / sqrt(1 - beta2^t)
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float one_minus_beta1 = 0.1F;  // given apart: 1 - beta2 loses digits in float
  float one_minus_beta2 = 0.001F;
  float epsilon = 1e-8F;
  float gradient_scale = 1;  // g is multiplied by this first (1 / samples in the batch)
  float weight_scale = 1;    // w is multiplied by this (1 - lr * decoupled weight decay)
  float decay1 = 1;          // skipped steps: m *= decay1 before the update
  float decay2 = 1;          // skipped steps: v *= decay2 before the update
  // Skipped steps: w -= skipped_move * m / (sqrt(v) * inv_sqrt_bias2 + epsilon), with the old m and v.
  float skipped_move = 0;
};

// One row: weights, first and second moment, gradient; each [n]. The gradient is read only.
struct AdamRow {
  float* w;
  float* m;
  float* v;
  const float* g;
  std::size_t n;
};

// The same with one second moment for each moment block of kMomentBlock weights, which follows the mean of
// their squared gradients. v is [n / kMomentBlock]; the other arrays are [n]. The first `used` elements of a
// row count; the rest is padding, with gradient 0. m is rounded to bf16 when it is stored; the weights take
// it as it was before that. weight_scale and gradient_scale must be 1.
inline constexpr std::size_t kMomentBlock = 16;
struct AdamBlocks {
  float* w;
  Bf16* m;
  float* v;
  const float* g;
  std::size_t n;
  std::size_t used;

  // The number of weights in the mean of the moment block at `begin`: never 0, also where all of them are
  // padding.
  [[nodiscard]] std::size_t averaged(std::size_t begin) const {
    return begin < used ? std::min(kMomentBlock, used - begin) : kMomentBlock;
  }
};

enum class Activation { kRelu, kIdentity, kTanh };

// Forward: y[i] = f(y[i]) in place, then h[i] = y[i] * scale where kept[i] != 0, else 0.
// Without dropout kept is null: h = y (scale is not used). h may be y.
struct ActivationForward {
  float* y;
  float* h;
  const std::uint8_t* kept;  // [n], null for none
  float scale;               // 1 / (1 - dropout)
  std::size_t n;
};
// Backward: on entry gradient[i] is the gradient by h[i]; it becomes the gradient by the input z of f. y =
// f(z) is as forward left it: equal to h where there is no dropout. The slope of relu at 0 is 0.
struct ActivationBackward {
  const float* y;
  float* gradient;
  const std::uint8_t* kept;  // as in forward
  float scale;
  std::size_t n;
};

// The weighted sum of some rows of a table. Overwrites `out`:
//   out[0..width) = sum over i of values[i] * table[indices[i] * stride + (0..width)]
// The terms are added in the order of the list. count may be 0 (out = 0). Rows are fetched ahead. So are the
// rows of the `more` indices behind the list: those of the sums that come next.
struct WeightedSum {
  float* out;
  const float* table;
  std::size_t stride;  // elements between rows, >= width
  const std::uint32_t* indices;
  const float* values;
  std::size_t count;
  std::size_t width;
  std::size_t more = 0;
};

// Selects the queries (columns) that may give one row a score above their thresholds. Products of bytes stand
// for the exact ones. For b in [0, n), rising, appends {b, upper} where upper > thresholds[b]:
//   upper = scale * scales[b] * (products[b] - offset) + bias + norm * errors[b] + error * norms[b]
// `hits` has room for n. NaN is never above. `upper` is rounded a few times; the caller's bounds leave room
// for that.
struct ScoreHit {
  std::uint32_t column;
  float upper;
};
struct SelectAbove {
  const std::int32_t* products;
  std::int32_t offset;
  float scale;
  float bias;
  float norm;
  float error;
  const float* scales;
  const float* norms;
  const float* errors;
  const float* thresholds;
  ScoreHit* hits;
  std::size_t n;
};

// out (c, r) = in (r, c) for in [rows][columns]; both multiples of kLanes (columns of pairs: of 2 kLanes).
template <class T>
struct Transpose {
  const T* in;
  T* out;
  std::size_t rows, columns;
  std::size_t in_stride, out_stride;  // elements between rows of in and of out
};

// The product that stands in where LIBXSMM has none (products.h, byte_products.h): C += A B, column-major.
//   a [k][lda], b [n][ldb], c [n][ldc]: m, n, k elements used; m a multiple of kLanes, n of 4, k of 2
// For Bf16 and int16_t A holds pairs, a [k/2][lda][2]: element (i, p) is a[(p/2 * lda + i) * 2 + p%2]. Sums
// of int16_t are exact as long as they fit their 32 bits.
template <class E>
using SumOf = std::conditional_t<std::is_same_v<E, std::int16_t>, std::int32_t, float>;
template <class E>
struct Multiply {
  const E* a;
  const E* b;
  SumOf<E>* c;
  std::size_t m, n, k;
  std::size_t lda, ldb, ldc;
};

// Hash codes of kCodeRows vectors at a time (learn/lsh). All ISAs give the same bits.
// - The vectors stand transposed: coordinate i of vector r is columns[i * kCodeRows + r].
// - A code joins `functions` functions of one vector, function f in the f-th place from the lowest bit.
// - Code c of vector r is out[c * kCodeRows + r].
inline constexpr std::size_t kCodeRows = 64;

// Signs of sparse projections, one bit each: sum >= 0 (NaN: 0), where, added up in this order,
//   sum = sum over t in [0, terms) of sign[t] * coordinate index[t]
// smallest[r] is the least |sum| of vector r over all functions.
struct SignCodes {
  const float* columns;
  const std::uint32_t* index;  // [codes][functions][terms]
  const float* sign;           // beside index: +1 or -1
  std::size_t codes, functions, terms;
  std::uint32_t* out;  // [codes][kCodeRows]
  float* smallest;     // [kCodeRows]; unspecified for a vector with NaN
};

// Winners of windows, log2(window) bits each: the position t in [0, window) of the largest coordinate
// index[t], the first of equals. smallest[r] is the least lead of a winner over the next best, over all
// functions.
struct WinnerCodes {
  const float* columns;
  const std::uint32_t* index;  // [codes][functions][window]
  std::size_t codes, functions;
  std::size_t window;  // a power of two, >= 2
  std::uint32_t* out;  // [codes][kCodeRows]
  float* smallest;     // [kCodeRows]; unspecified for a vector with NaN
};

// Limits of to_int8. A row of smaller numbers than the first would have a scale below the normal numbers. A
// scale above the second, times 127, would be infinite.
inline constexpr float kSmallestByteRow = 0x1.fcp-120F;       // 127 * 2^-126
inline constexpr float kLargestByteScale = 0x1.020406p+121F;  // the last whose product with 127 is finite

struct Kernels {
  Isa isa;

  void (*add_scaled)(float* y, const float* x, float a, std::size_t n);  // y += a * x
  void (*scale)(float* y, float a, std::size_t n);                       // y *= a
  float (*dot)(const float* x, const float* y, std::size_t n);
  float (*dot_bf16)(const Bf16* x, const float* y, std::size_t n);
  std::int32_t (*dot_bytes)(const std::uint8_t* x, const std::int8_t* y, std::size_t n);  // exact; n <= 65536
  float (*squared_norm)(const float* x, std::size_t n);

  // Round to nearest even; NaN stays NaN, and numbers beyond the largest bf16 become infinity.
  void (*to_bf16)(const float* x, Bf16* out, std::size_t n);
  void (*from_bf16)(const Bf16* x, float* out, std::size_t n);
  // Round to signed bytes with one scale, which is returned. With m the largest |x[i]|:
  //   scale  = min(m / 127, kLargestByteScale)
  //   out[i] = x[i] * (127 / m) to nearest even, in -127..127
  // so that |x[i] - scale * out[i]| <= (1/2 + 2^-14) m / 127. For m below kSmallestByteRow all bytes and the
  // scale are 0. With an infinity or NaN in the row all bytes are 0 and the scale is NaN. All ISAs give the
  // same bits.
  float (*to_int8)(const float* x, std::int8_t* out, std::size_t n);
  // out[i] = scale * x[i], rounded once, the same on all ISAs.
  void (*from_int8)(const std::int8_t* x, float scale, float* out, std::size_t n);
  // out[2i] = row0[i], out[2i + 1] = row1[i].
  void (*interleave_pairs)(const Bf16* row0, const Bf16* row1, Bf16* out, std::size_t n);
  void (*transpose)(const Transpose<float>& matrix);
  void (*transpose_bf16)(const Transpose<Bf16>& matrix);
  // Moves pairs of adjacent elements as one: out (c/2, r) = {in (r, c), in (r, c + 1)} for even c.
  void (*transpose_pairs)(const Transpose<Bf16>& matrix);

  void (*exp_row)(const ExpRow& row, float* out);  // out may be row.scores
  void (*exp_row_bf16)(const ExpRow& row, Bf16* out);
  void (*adam_row)(const AdamRow& row, const AdamCoefficients& coefficients);
  void (*adam_blocks)(const AdamBlocks& row, const AdamCoefficients& coefficients);
  // Indexed by Activation.
  std::array<void (*)(const ActivationForward&), 3> activate;
  std::array<void (*)(const ActivationBackward&), 3> activate_backward;
  void (*weighted_sum)(const WeightedSum& sum);
  std::size_t (*select_above)(const SelectAbove& select);  // how many hits
  void (*sign_codes)(const SignCodes& signs);
  void (*winner_codes)(const WinnerCodes& winners);
  void (*multiply)(const Multiply<float>& product);
  void (*multiply_bf16)(const Multiply<Bf16>& product);
  void (*multiply_int16)(const Multiply<std::int16_t>& product);
};

// The table of one instruction set. Requires supported(isa).
[[nodiscard]] const Kernels& kernels_for(Isa isa);

// The functions of a table by element type, for templates over it.
inline void exp_row(const Kernels& k, const ExpRow& row, float* out) { k.exp_row(row, out); }
inline void exp_row(const Kernels& k, const ExpRow& row, Bf16* out) { k.exp_row_bf16(row, out); }
[[nodiscard]] inline float dot(const Kernels& k, const float* x, const float* y, std::size_t n) {
  return k.dot(x, y, n);
}
[[nodiscard]] inline float dot(const Kernels& k, const Bf16* x, const float* y, std::size_t n) {
  return k.dot_bf16(x, y, n);
}

}  // namespace gossamer::kernels
