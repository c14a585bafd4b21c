// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gossamer::kernels::reference {

Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};  // quiet, never infinity
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

float from_bf16(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

ByteScale byte_scale(float largest) {
  if (!std::isfinite(largest)) return {.scale = std::numeric_limits<float>::quiet_NaN(), .factor = 0};
  if (largest < kSmallestByteRow) return {.scale = 0, .factor = 0};
  return {.scale = std::min(largest / 127.0F, kLargestByteScale), .factor = 127.0F / largest};
}

namespace {

void add_scaled(float* y, const float* x, float a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void scale(float* y, float a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] *= a;
}

float dot(const float* x, const float* y, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

float dot_bf16(const Bf16* x, const float* y, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += from_bf16(x[i]) * y[i];
  return sum;
}

std::int32_t dot_bytes(const std::uint8_t* x, const std::int8_t* y, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::int32_t{x[i]} * std::int32_t{y[i]};
  return sum;
}

float squared_norm(const float* x, std::size_t n) { return dot(x, x, n); }

void to_bf16_row(const float* x, Bf16* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = to_bf16(x[i]);
}

void from_bf16_row(const Bf16* x, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = from_bf16(x[i]);
}

// Magnitudes of floats rise with their bits; infinity and NaN stand above all numbers.
float to_int8(const float* x, std::int8_t* out, std::size_t n) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(std::abs(x[i])));
  }
  const ByteScale scale = byte_scale(std::bit_cast<float>(largest));
  for (std::size_t i = 0; i < n; ++i) {
    out[i] =
        scale.factor == 0.0F ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(x[i] * scale.factor));
  }
  return scale.scale;
}

void from_int8(const std::int8_t* x, float scale, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = scale * static_cast<float>(x[i]);
}

void interleave_pairs(const Bf16* row0, const Bf16* row1, Bf16* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    out[2 * i] = row0[i];
    out[2 * i + 1] = row1[i];
  }
}

template <class T>
void transpose(const Transpose<T>& t) {
  for (std::size_t r = 0; r < t.rows; ++r) {
    for (std::size_t c = 0; c < t.columns; ++c) t.out[c * t.out_stride + r] = t.in[r * t.in_stride + c];
  }
}

void transpose_pairs(const Transpose<Bf16>& t) {
  for (std::size_t r = 0; r < t.rows; ++r) {
    for (std::size_t c = 0; c < t.columns; ++c) {
      t.out[c / 2 * t.out_stride + 2 * r + c % 2] = t.in[r * t.in_stride + c];
    }
  }
}

// NaN passes both comparisons unchanged.
float clamped_exp(float x) {
  if (x < -60.0F) x = -60.0F;
  if (x > 60.0F) x = 60.0F;
  return std::exp(x);
}

void exp_row(const ExpRow& row, float* out) {
  for (std::size_t i = 0; i < row.n; ++i) {
    out[i] = clamped_exp(row.scores[i] + row.bias - row.shift[i]);
    row.sums[i] += out[i];
  }
}

void exp_row_bf16(const ExpRow& row, Bf16* out) {
  for (std::size_t i = 0; i < row.n; ++i) {
    out[i] = to_bf16(clamped_exp(row.scores[i] + row.bias - row.shift[i]));
    row.sums[i] += from_bf16(out[i]);
  }
}

void adam_row(const AdamRow& row, const AdamCoefficients& c) {
  for (std::size_t i = 0; i < row.n; ++i) {
    const float g = row.g[i] * c.gradient_scale;
    const float skipped = c.skipped_move * row.m[i] / (std::sqrt(row.v[i]) * c.inv_sqrt_bias2 + c.epsilon);
    const float m = c.beta1 * (c.decay1 * row.m[i]) + c.one_minus_beta1 * g;
    const float v = c.beta2 * (c.decay2 * row.v[i]) + c.one_minus_beta2 * g * g;
    const float move = c.step_size * m / (std::sqrt(v) * c.inv_sqrt_bias2 + c.epsilon);
    row.w[i] = c.weight_scale * (row.w[i] - skipped) - move;
    row.m[i] = m;
    row.v[i] = v;
  }
}

void adam_blocks(const AdamBlocks& row, const AdamCoefficients& c) {
  const auto over_root = [&c](float step, float v) {
    return step / (std::sqrt(v) * c.inv_sqrt_bias2 + c.epsilon);
  };
  for (std::size_t begin = 0; begin < row.n; begin += kMomentBlock) {
    float& v = row.v[begin / kMomentBlock];
    const float skipped_move = over_root(c.skipped_move, v);
    const float mean = squared_norm(row.g + begin, kMomentBlock) / static_cast<float>(row.averaged(begin));
    v = c.beta2 * (c.decay2 * v) + c.one_minus_beta2 * mean;
    const float step = over_root(c.step_size, v);
    for (std::size_t i = begin; i < begin + kMomentBlock; ++i) {
      const float before = from_bf16(row.m[i]);
      const float m = c.beta1 * (c.decay1 * before) + c.one_minus_beta1 * row.g[i];
      row.w[i] = row.w[i] - skipped_move * before - step * m;
      row.m[i] = to_bf16(m);
    }
  }
}

template <Activation kActivation>
float value(float z) {
  if constexpr (kActivation == Activation::kRelu) return z < 0.0F ? 0.0F : z;
  if constexpr (kActivation == Activation::kTanh) return std::tanh(z);
  return z;
}

// The slope of the activation at z, from y = value(z).
template <Activation kActivation>
float slope(float y) {
  if constexpr (kActivation == Activation::kRelu) return y > 0.0F ? 1.0F : 0.0F;
  if constexpr (kActivation == Activation::kTanh) return 1.0F - y * y;
  return 1.0F;
}

template <Activation kActivation>
void activate(const ActivationForward& a) {
  for (std::size_t i = 0; i < a.n; ++i) {
    const float y = value<kActivation>(a.y[i]);
    a.y[i] = y;
    a.h[i] = a.kept == nullptr ? y : (a.kept[i] != 0 ? y * a.scale : 0.0F);
  }
}

template <Activation kActivation>
void activate_backward(const ActivationBackward& a) {
  for (std::size_t i = 0; i < a.n; ++i) {
    const float g = a.gradient[i] * slope<kActivation>(a.y[i]);
    a.gradient[i] = a.kept == nullptr ? g : (a.kept[i] != 0 ? g * a.scale : 0.0F);
  }
}

void weighted_sum(const WeightedSum& s) {
  for (std::size_t j = 0; j < s.width; ++j) s.out[j] = 0;
  for (std::size_t i = 0; i < s.count; ++i) {
    add_scaled(s.out, s.table + s.indices[i] * s.stride, s.values[i], s.width);
  }
}

std::size_t select_above(const SelectAbove& s) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < s.n; ++i) {
    const float product = s.scale * s.scales[i] * static_cast<float>(s.products[i] - s.offset);
    const float upper = product + s.bias + s.norm * s.errors[i] + s.error * s.norms[i];
    if (upper > s.thresholds[i]) s.hits[count++] = {static_cast<std::uint32_t>(i), upper};
  }
  return count;
}

void sign_codes(const SignCodes& s) {
  std::fill_n(s.smallest, kCodeRows, std::numeric_limits<float>::infinity());
  std::fill_n(s.out, s.codes * kCodeRows, 0U);
  for (std::size_t at = 0; at < s.codes * s.functions; ++at) {
    for (std::size_t r = 0; r < kCodeRows; ++r) {
      float sum = 0;
      for (std::size_t t = at * s.terms; t < (at + 1) * s.terms; ++t) {
        sum += s.sign[t] * s.columns[s.index[t] * kCodeRows + r];
      }
      if (sum >= 0.0F) s.out[at / s.functions * kCodeRows + r] |= 1U << (at % s.functions);
      s.smallest[r] = std::min(s.smallest[r], std::abs(sum));
    }
  }
}

void winner_codes(const WinnerCodes& w) {
  const auto bits = static_cast<unsigned>(std::countr_zero(w.window));
  std::fill_n(w.smallest, kCodeRows, std::numeric_limits<float>::infinity());
  std::fill_n(w.out, w.codes * kCodeRows, 0U);
  for (std::size_t at = 0; at < w.codes * w.functions; ++at) {
    const std::uint32_t* index = w.index + at * w.window;
    for (std::size_t r = 0; r < kCodeRows; ++r) {
      float best = w.columns[index[0] * kCodeRows + r];
      float second = -std::numeric_limits<float>::infinity();
      std::uint32_t winner = 0;
      for (std::uint32_t t = 1; t < w.window; ++t) {
        const float x = w.columns[index[t] * kCodeRows + r];
        if (x > best) winner = t;
        second = std::max(second, std::min(best, x));
        best = std::max(best, x);
      }
      w.out[at / w.functions * kCodeRows + r] |= winner << (bits * (at % w.functions));
      w.smallest[r] = std::min(w.smallest[r], best - second);
    }
  }
}

void multiply(const Multiply<float>& p) {
  for (std::size_t j = 0; j < p.n; ++j) {
    for (std::size_t q = 0; q < p.k; ++q)
      add_scaled(p.c + j * p.ldc, p.a + q * p.lda, p.b[j * p.ldb + q], p.m);
  }
}

void multiply_bf16(const Multiply<Bf16>& p) {
  for (std::size_t j = 0; j < p.n; ++j) {
    float* column = p.c + j * p.ldc;
    for (std::size_t q = 0; q < p.k; ++q) {
      const float b = from_bf16(p.b[j * p.ldb + q]);
      const Bf16* a = p.a + q / 2 * p.lda * 2 + q % 2;
      for (std::size_t i = 0; i < p.m; ++i) column[i] += from_bf16(a[2 * i]) * b;
    }
  }
}

void multiply_int16(const Multiply<std::int16_t>& p) {
  for (std::size_t j = 0; j < p.n; ++j) {
    std::int32_t* column = p.c + j * p.ldc;
    for (std::size_t q = 0; q < p.k; ++q) {
      const std::int32_t b = p.b[j * p.ldb + q];
      const std::int16_t* a = p.a + q / 2 * p.lda * 2 + q % 2;
      for (std::size_t i = 0; i < p.m; ++i) column[i] += a[2 * i] * b;
    }
  }
}

}  // namespace

Kernels table() {
  using enum Activation;
  return {
      .isa = Isa::kScalar,
      .add_scaled = add_scaled,
      .scale = scale,
      .dot = dot,
      .dot_bf16 = dot_bf16,
      .dot_bytes = dot_bytes,
      .squared_norm = squared_norm,
      .to_bf16 = to_bf16_row,
      .from_bf16 = from_bf16_row,
      .to_int8 = to_int8,
      .from_int8 = from_int8,
      .interleave_pairs = interleave_pairs,
      .transpose = transpose<float>,
      .transpose_bf16 = transpose<Bf16>,
      .transpose_pairs = transpose_pairs,
      .exp_row = exp_row,
      .exp_row_bf16 = exp_row_bf16,
      .adam_row = adam_row,
      .adam_blocks = adam_blocks,
      .activate = {activate<kRelu>, activate<kIdentity>, activate<kTanh>},
      .activate_backward = {activate_backward<kRelu>, activate_backward<kIdentity>, activate_backward<kTanh>},
      .weighted_sum = weighted_sum,
      .select_above = select_above,
      .sign_codes = sign_codes,
      .winner_codes = winner_codes,
      .multiply = multiply,
      .multiply_bf16 = multiply_bf16,
      .multiply_int16 = multiply_int16};
}

}  // namespace gossamer::kernels::reference
