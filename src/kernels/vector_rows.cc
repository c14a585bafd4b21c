// SPDX-License-Identifier: Apache-2.0
//
// This file is compiled once per target of Highway: foreach_target.h includes it again. The functions handle
// Lanes(d) floats at a time, and kLanes is a multiple of that on all targets.

// The targets are those that Isa knows. Without this macro the baseline would fall to SSSE3, for lack of AES
// in x86-64-v2.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_rows.cc"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "base/prefetch.h"
#include "kernels/reference.h"
#include "kernels/vector.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Int = hn::RebindToSigned<D>;
using Bits = hn::RebindToUnsigned<D>;
using HalfBits = hn::Rebind<std::uint16_t, D>;
using Bytes = hn::Rebind<std::uint8_t, D>;
using SignedBytes = hn::Rebind<std::int8_t, D>;

constexpr D d;
constexpr std::size_t kWidth = HWY_MAX_BYTES / sizeof(float);
static_assert(kLanes % kWidth == 0);

V load(const float* p) { return hn::LoadU(d, p); }
V load(const Bf16* p) {
  const auto half = hn::LoadU(HalfBits(), &p->bits);
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(Bits(), half)));
}
void store(V v, float* p) { hn::StoreU(v, d, p); }

// Rounds to nearest even: half of the last kept bit, less one where that bit is 0, carries. NaN is kept, made
// quiet.
V store(V v, Bf16* p) {
  const Bits bits;
  const auto raw = hn::BitCast(bits, v);
  const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(bits, 1U));
  const auto rounded = hn::ShiftRight<16>(hn::Add(raw, hn::Add(last, hn::Set(bits, 0x7fffU))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(raw), hn::Set(bits, 0x40U));
  const auto top = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(v)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(HalfBits(), hn::BitCast(Int(), top)), HalfBits(), &p->bits);
  return hn::BitCast(d, hn::ShiftLeft<16>(top));
}

// exp(clamp(x, -60, 60)). Reduction x = n ln 2 + f, |f| <= ln 2 / 2, and the polynomial of degree 6 of
// Cephes' expf; relative error below 3e-7. The order of the operands of Max and Min lets NaN through.
V clamped_exp(V x) {
  x = hn::Min(hn::Set(d, 60.0F), hn::Max(hn::Set(d, -60.0F), x));
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504F)));
  const V nf = hn::ConvertTo(d, n);
  V f = hn::NegMulAdd(nf, hn::Set(d, 0.693359375F), x);  // exact: few bits
  f = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4F), f);
  V p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, f, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.0000001201e-1F));
  p = hn::MulAdd(hn::Mul(f, f), p, hn::Add(f, hn::Set(d, 1.0F)));
  const auto power = hn::ShiftLeft<23>(hn::Add(n, hn::Set(Int(), 127)));
  return hn::Mul(p, hn::BitCast(d, power));
}

void add_scaled(float* y, const float* x, float a, std::size_t n) {
  const V factor = hn::Set(d, a);
  for (std::size_t i = 0; i < n; i += kWidth) store(hn::MulAdd(factor, load(x + i), load(y + i)), y + i);
}

void scale(float* y, float a, std::size_t n) {
  const V factor = hn::Set(d, a);
  for (std::size_t i = 0; i < n; i += kWidth) store(hn::Mul(factor, load(y + i)), y + i);
}

// Four sums in flight hide the latency of the multiply-add.
template <class X>
float dot(const X* x, const float* y, std::size_t n) {
  V a = hn::Zero(d);
  V b = a;
  V c = a;
  V e = a;
  std::size_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    a = hn::MulAdd(load(x + i), load(y + i), a);
    b = hn::MulAdd(load(x + i + kWidth), load(y + i + kWidth), b);
    c = hn::MulAdd(load(x + i + 2 * kWidth), load(y + i + 2 * kWidth), c);
    e = hn::MulAdd(load(x + i + 3 * kWidth), load(y + i + 3 * kWidth), e);
  }
  for (; i < n; i += kWidth) a = hn::MulAdd(load(x + i), load(y + i), a);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Bytes are widened to 16 bits and multiplied in pairs, kLanes of them at a time. With more at a time, half a
// vector would be left over at the narrowest rows. The order within the sums does not matter: they are exact.
std::int32_t dot_bytes(const std::uint8_t* x, const std::int8_t* y, std::size_t n) {
  const hn::CappedTag<std::int16_t, kLanes> words;
  const hn::Rebind<std::uint8_t, decltype(words)> unsigned_bytes;
  const hn::Rebind<std::int8_t, decltype(words)> signed_bytes;
  const hn::RepartitionToWide<decltype(words)> sums;
  auto even = hn::Zero(sums);
  auto odd = even;
  for (std::size_t i = 0; i < n; i += hn::Lanes(words)) {
    const auto a = hn::PromoteTo(words, hn::LoadU(unsigned_bytes, x + i));
    const auto b = hn::PromoteTo(words, hn::LoadU(signed_bytes, y + i));
    even = hn::ReorderWidenMulAccumulate(sums, a, b, even, odd);
  }
  return hn::GetLane(hn::SumOfLanes(sums, hn::Add(even, odd)));
}

float squared_norm(const float* x, std::size_t n) { return dot(x, x, n); }

void to_bf16(const float* x, Bf16* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWidth) (void)store(load(x + i), out + i);
}

void from_bf16(const Bf16* x, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWidth) store(load(x + i), out + i);
}

// As integers magnitudes keep their order, and NaN stands above them all instead of getting lost in Max.
float largest_magnitude(const float* x, std::size_t n) {
  auto largest = hn::Zero(Int());
  for (std::size_t i = 0; i < n; i += kWidth) {
    largest = hn::Max(largest, hn::BitCast(Int(), hn::Abs(load(x + i))));
  }
  return hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(Int(), largest)));
}

float to_int8(const float* x, std::int8_t* out, std::size_t n) {
  const reference::ByteScale scale = reference::byte_scale(largest_magnitude(x, n));
  if (scale.factor == 0.0F) {
    std::fill_n(out, n, std::int8_t{0});
    return scale.scale;
  }
  const V factor = hn::Set(d, scale.factor);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const auto rounded = hn::NearestInt(hn::Mul(load(x + i), factor));
    hn::StoreU(hn::DemoteTo(SignedBytes(), rounded), SignedBytes(), out + i);
  }
  return scale.scale;
}

void from_int8(const std::int8_t* x, float scale, float* out, std::size_t n) {
  const V factor = hn::Set(d, scale);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const auto whole = hn::PromoteTo(Int(), hn::LoadU(SignedBytes(), x + i));
    store(hn::Mul(factor, hn::ConvertTo(d, whole)), out + i);
  }
}

void exp_row(const ExpRow& row, float* out) {
  const V bias = hn::Set(d, row.bias);
  for (std::size_t i = 0; i < row.n; i += kWidth) {
    const V e = clamped_exp(hn::Sub(hn::Add(load(row.scores + i), bias), load(row.shift + i)));
    store(e, out + i);
    store(hn::Add(load(row.sums + i), e), row.sums + i);
  }
}

void exp_row_bf16(const ExpRow& row, Bf16* out) {
  const V bias = hn::Set(d, row.bias);
  for (std::size_t i = 0; i < row.n; i += kWidth) {
    const V e = clamped_exp(hn::Sub(hn::Add(load(row.scores + i), bias), load(row.shift + i)));
    const V stored = store(e, out + i);
    store(hn::Add(load(row.sums + i), stored), row.sums + i);
  }
}

enum class Skipped { kNothing, kMoved };

template <Skipped kSkipped>
void adam(const AdamRow& row, const AdamCoefficients& c) {
  const V beta1 = hn::Set(d, c.beta1 * c.decay1);
  const V beta2 = hn::Set(d, c.beta2 * c.decay2);
  const V gain1 = hn::Set(d, c.one_minus_beta1 * c.gradient_scale);
  const V gain2 = hn::Set(d, c.one_minus_beta2 * c.gradient_scale * c.gradient_scale);
  const V step = hn::Set(d, c.step_size);
  const V epsilon = hn::Set(d, c.epsilon);
  const V bias2 = hn::Set(d, c.inv_sqrt_bias2);
  const V weight = hn::Set(d, c.weight_scale);
  for (std::size_t i = 0; i < row.n; i += kWidth) {
    const V g = load(row.g + i);
    V m = load(row.m + i);
    V v = load(row.v + i);
    V w = load(row.w + i);
    if constexpr (kSkipped == Skipped::kMoved) {
      const V direction = hn::Div(m, hn::MulAdd(hn::Sqrt(v), bias2, epsilon));
      w = hn::NegMulAdd(hn::Set(d, c.skipped_move), direction, w);
    }
    m = hn::MulAdd(beta1, m, hn::Mul(gain1, g));
    v = hn::MulAdd(beta2, v, hn::Mul(hn::Mul(gain2, g), g));
    const V direction = hn::Div(m, hn::MulAdd(hn::Sqrt(v), bias2, epsilon));
    store(hn::NegMulAdd(step, direction, hn::Mul(weight, w)), row.w + i);
    store(m, row.m + i);
    store(v, row.v + i);
  }
}

void adam_row(const AdamRow& row, const AdamCoefficients& c) {
  if (c.skipped_move == 0.0F) return adam<Skipped::kNothing>(row, c);
  adam<Skipped::kMoved>(row, c);
}

V over_root(float step, float v, const AdamCoefficients& c) {
  return hn::Set(d, step / (std::sqrt(v) * c.inv_sqrt_bias2 + c.epsilon));
}

template <Skipped kSkipped>
void adam(const AdamBlocks& row, const AdamCoefficients& c) {
  const V beta1 = hn::Set(d, c.beta1 * c.decay1);
  const V gain1 = hn::Set(d, c.one_minus_beta1);
  const float beta2 = c.beta2 * c.decay2;
  const float gain2 = c.one_minus_beta2 / kMomentBlock;
  const std::size_t full = row.used / kMomentBlock * kMomentBlock;
  const float last_gain2 = c.one_minus_beta2 / static_cast<float>(row.averaged(full));
  for (std::size_t begin = 0; begin < row.n; begin += kMomentBlock) {
    const std::size_t end = begin + kMomentBlock;
    V squares = hn::Zero(d);
    for (std::size_t i = begin; i < end; i += kWidth) {
      const V g = load(row.g + i);
      squares = hn::MulAdd(g, g, squares);
    }
    float& v = row.v[begin / kMomentBlock];
    const V moved = kSkipped == Skipped::kMoved ? over_root(c.skipped_move, v, c) : hn::Zero(d);
    v = beta2 * v + (begin < full ? gain2 : last_gain2) * hn::GetLane(hn::SumOfLanes(d, squares));
    const V step = over_root(c.step_size, v, c);
    for (std::size_t i = begin; i < end; i += kWidth) {
      V m = load(row.m + i);
      V w = load(row.w + i);
      if constexpr (kSkipped == Skipped::kMoved) w = hn::NegMulAdd(moved, m, w);
      m = hn::MulAdd(beta1, m, hn::Mul(gain1, load(row.g + i)));
      store(hn::NegMulAdd(step, m, w), row.w + i);
      (void)store(m, row.m + i);
    }
  }
}

void adam_blocks(const AdamBlocks& row, const AdamCoefficients& c) {
  if (c.skipped_move == 0.0F) return adam<Skipped::kNothing>(row, c);
  adam<Skipped::kMoved>(row, c);
}

// tanh z = 1 - 2 / (exp(2 z) + 1): the absolute error stays below 5e-7, which is what gradients feel.
template <Activation kActivation>
V value(V z) {
  const V one = hn::Set(d, 1.0F);
  if constexpr (kActivation == Activation::kRelu) return hn::Max(hn::Zero(d), z);  // in this order NaN stays
  if constexpr (kActivation == Activation::kTanh) {
    return hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(clamped_exp(hn::Add(z, z)), one)));
  }
  return z;
}

template <Activation kActivation>
V times_slope(V gradient, V y) {
  if constexpr (kActivation == Activation::kRelu) {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), gradient);
  }
  if constexpr (kActivation == Activation::kTanh)
    return hn::Mul(gradient, hn::NegMulAdd(y, y, hn::Set(d, 1.0F)));
  return gradient;
}

V dropped(V x, const std::uint8_t* kept, V factor) {
  const auto keep = hn::PromoteTo(Int(), hn::LoadU(Bytes(), kept));
  const auto mask = hn::RebindMask(d, hn::Ne(keep, hn::Zero(Int())));
  return hn::IfThenElseZero(mask, hn::Mul(x, factor));
}

template <Activation kActivation>
void activate(const ActivationForward& a) {
  const V factor = hn::Set(d, a.scale);
  for (std::size_t i = 0; i < a.n; i += kWidth) {
    const V y = value<kActivation>(load(a.y + i));
    store(y, a.y + i);
    store(a.kept == nullptr ? y : dropped(y, a.kept + i, factor), a.h + i);
  }
}

template <Activation kActivation>
void activate_backward(const ActivationBackward& a) {
  const V factor = hn::Set(d, a.scale);
  for (std::size_t i = 0; i < a.n; i += kWidth) {
    const V g = times_slope<kActivation>(load(a.gradient + i), load(a.y + i));
    store(a.kept == nullptr ? g : dropped(g, a.kept + i, factor), a.gradient + i);
  }
}

// How many elements the prefetch runs ahead, in whole rows. At about 20 ns for 128 of them the sum takes long
// enough to cover a miss to memory.
constexpr std::size_t kAhead = 768;

enum class Fetch { kNothing, kRows };

// kVectors columns of the sum, kept in registers over the whole list.
template <std::size_t kVectors, Fetch kFetch>
void weighted_columns(const WeightedSum& s, std::size_t column) {
  V sum[kVectors];
  for (V& v : sum) v = hn::Zero(d);
  const std::size_t ahead = kAhead / s.width;
  const std::size_t known = s.count + s.more;
  for (std::size_t i = 0; i < s.count; ++i) {
    if constexpr (kFetch == Fetch::kRows) {
      if (i + ahead < known) prefetch_elements(s.table + s.indices[i + ahead] * s.stride, s.width);
    }
    const float* row = s.table + s.indices[i] * s.stride + column;
    const V factor = hn::Set(d, s.values[i]);
    for (std::size_t j = 0; j < kVectors; ++j) sum[j] = hn::MulAdd(factor, load(row + j * kWidth), sum[j]);
  }
  for (std::size_t j = 0; j < kVectors; ++j) store(sum[j], s.out + column + j * kWidth);
}

// The columns from `column` on in blocks of kVectors vectors; the columns left over go in smaller blocks.
// Large blocks are better because every pass costs the walk along the list again. The first block fetches
// whole rows ahead; the others find them in the cache.
template <std::size_t kVectors>
void weighted_blocks(const WeightedSum& s, std::size_t column) {
  constexpr std::size_t kBlock = kVectors * kWidth;
  for (; column + kBlock <= s.width; column += kBlock) {
    if (column == 0) {
      weighted_columns<kVectors, Fetch::kRows>(s, column);
    } else {
      weighted_columns<kVectors, Fetch::kNothing>(s, column);
    }
  }
  if constexpr (kBlock > kLanes) weighted_blocks<kVectors / 2>(s, column);
}

void weighted_sum(const WeightedSum& s) { weighted_blocks<8>(s, 0); }

// The hits among kWidth columns from `first` on, appended behind `count`; returns the new count.
HWY_NOINLINE std::size_t append_hits(const SelectAbove& s, V upper, std::size_t first, std::size_t count) {
  float uppers[kWidth];
  store(upper, uppers);
  for (std::size_t i = 0; i < kWidth; ++i) {
    if (uppers[i] > s.thresholds[first + i]) {
      s.hits[count++] = {static_cast<std::uint32_t>(first + i), uppers[i]};
    }
  }
  return count;
}

// Nearly all columns fail: four vectors share one branch.
std::size_t select_above(const SelectAbove& s) {
  constexpr std::size_t kGroup = 4;
  const V scale = hn::Set(d, s.scale);
  const V bias = hn::Set(d, s.bias);
  const V norm = hn::Set(d, s.norm);
  const V error = hn::Set(d, s.error);
  const auto offset = hn::Set(Int(), s.offset);
  const auto upper = [&](std::size_t i) {
    const V product = hn::ConvertTo(d, hn::Sub(hn::LoadU(Int(), s.products + i), offset));
    const V slack = hn::MulAdd(error, load(s.norms + i), hn::MulAdd(norm, load(s.errors + i), bias));
    return hn::MulAdd(hn::Mul(scale, load(s.scales + i)), product, slack);
  };
  const auto above = [&](V value, std::size_t i) { return hn::Gt(value, load(s.thresholds + i)); };
  std::size_t count = 0;
  std::size_t i = 0;
  for (; i + kGroup * kWidth <= s.n; i += kGroup * kWidth) {
    const V values[kGroup] = {upper(i), upper(i + kWidth), upper(i + 2 * kWidth), upper(i + 3 * kWidth)};
    const auto any = hn::Or(hn::Or(above(values[0], i), above(values[1], i + kWidth)),
                            hn::Or(above(values[2], i + 2 * kWidth), above(values[3], i + 3 * kWidth)));
    if (hn::AllFalse(d, any)) [[likely]]
      continue;
    for (std::size_t j = 0; j < kGroup; ++j) count = append_hits(s, values[j], i + j * kWidth, count);
  }
  for (; i < s.n; i += kWidth) {
    const V value = upper(i);
    if (!hn::AllFalse(d, above(value, i))) count = append_hits(s, value, i, count);
  }
  return count;
}

}  // namespace

void fill_rows(Kernels& table) {
  using enum Activation;
  table.add_scaled = add_scaled;
  table.scale = scale;
  table.dot = dot<float>;
  table.dot_bf16 = dot<Bf16>;
  table.dot_bytes = dot_bytes;
  table.squared_norm = squared_norm;
  table.to_bf16 = to_bf16;
  table.from_bf16 = from_bf16;
  table.to_int8 = to_int8;
  table.from_int8 = from_int8;
  table.exp_row = exp_row;
  table.exp_row_bf16 = exp_row_bf16;
  table.adam_row = adam_row;
  table.adam_blocks = adam_blocks;
  table.activate = {activate<kRelu>, activate<kIdentity>, activate<kTanh>};
  table.activate_backward = {activate_backward<kRelu>, activate_backward<kIdentity>,
                             activate_backward<kTanh>};
  table.weighted_sum = weighted_sum;
  table.select_above = select_above;
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer::kernels {

static_assert((HWY_TARGETS) == (HWY_SSE4 | HWY_AVX2 | HWY_AVX3), "Isa and Highway's targets must agree");

void register_rows(Isa isa, Kernels& table) {
  register_for(isa, {N_SSE4::fill_rows, N_AVX2::fill_rows, N_AVX3::fill_rows}, table);
}

}  // namespace gossamer::kernels
#endif
