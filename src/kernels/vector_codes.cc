// SPDX-License-Identifier: Apache-2.0
//
// Compiled once per target of Highway, as vector_rows.cc.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_codes.cc"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/vector.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Bits = hn::RebindToUnsigned<D>;
using Words = hn::Vec<Bits>;

constexpr D d;
constexpr Bits bits;
constexpr std::size_t kWidth = HWY_MAX_BYTES / sizeof(float);
static_assert(kCodeRows % kWidth == 0);
constexpr std::size_t kRegisters = kWidth == 16 ? 32 : 16;

// Vectors that are handled side by side: one load of an index serves them all, and their sums hide each
// other's latency. What a code needs for longer than a function may live in memory.
constexpr std::size_t kSignVectors = std::min(kCodeRows / kWidth, kRegisters / 2);
constexpr std::size_t kWinnerVectors = std::min(kCodeRows / kWidth, kRegisters / 8);

// kSignVectors vectors from column `first` on.
void sign_columns(const SignCodes& s, std::size_t first) {
  V smallest[kSignVectors];
  for (V& v : smallest) v = hn::Set(d, std::numeric_limits<float>::infinity());
  const std::uint32_t* index = s.index;
  const float* sign = s.sign;
  for (std::size_t c = 0; c < s.codes; ++c) {
    Words code[kSignVectors];
    for (Words& w : code) w = hn::Zero(bits);
    for (std::size_t f = 0; f < s.functions; ++f) {
      V sum[kSignVectors];
      for (V& v : sum) v = hn::Zero(d);
      for (std::size_t t = 0; t < s.terms; ++t) {
        const float* column = s.columns + *index++ * kCodeRows + first;
        const V factor = hn::Set(d, *sign++);
        for (std::size_t j = 0; j < kSignVectors; ++j) {
          sum[j] = hn::MulAdd(factor, hn::LoadU(d, column + j * kWidth), sum[j]);
        }
      }
      const Words bit = hn::Set(bits, 1U << f);
      for (std::size_t j = 0; j < kSignVectors; ++j) {
        const auto set = hn::RebindMask(bits, hn::Ge(sum[j], hn::Zero(d)));
        code[j] = hn::Or(code[j], hn::IfThenElseZero(set, bit));
        smallest[j] = hn::Min(smallest[j], hn::Abs(sum[j]));
      }
    }
    for (std::size_t j = 0; j < kSignVectors; ++j) {
      hn::StoreU(code[j], bits, s.out + c * kCodeRows + first + j * kWidth);
    }
  }
  for (std::size_t j = 0; j < kSignVectors; ++j) hn::StoreU(smallest[j], d, s.smallest + first + j * kWidth);
}

void sign_codes(const SignCodes& s) {
  for (std::size_t first = 0; first < kCodeRows; first += kSignVectors * kWidth) sign_columns(s, first);
}

void winner_columns(const WinnerCodes& w, std::size_t first) {
  const auto place = static_cast<int>(std::countr_zero(w.window));
  V smallest[kWinnerVectors];
  for (V& v : smallest) v = hn::Set(d, std::numeric_limits<float>::infinity());
  const std::uint32_t* index = w.index;
  for (std::size_t c = 0; c < w.codes; ++c) {
    Words code[kWinnerVectors];
    for (Words& x : code) x = hn::Zero(bits);
    for (std::size_t f = 0; f < w.functions; ++f, index += w.window) {
      V best[kWinnerVectors];
      V second[kWinnerVectors];
      Words winner[kWinnerVectors];
      for (std::size_t j = 0; j < kWinnerVectors; ++j) {
        best[j] = hn::LoadU(d, w.columns + index[0] * kCodeRows + first + j * kWidth);
        second[j] = hn::Set(d, -std::numeric_limits<float>::infinity());
        winner[j] = hn::Zero(bits);
      }
      for (std::uint32_t t = 1; t < w.window; ++t) {
        const float* column = w.columns + index[t] * kCodeRows + first;
        for (std::size_t j = 0; j < kWinnerVectors; ++j) {
          const V x = hn::LoadU(d, column + j * kWidth);
          const auto wins = hn::RebindMask(bits, hn::Gt(x, best[j]));
          winner[j] = hn::IfThenElse(wins, hn::Set(bits, t), winner[j]);
          second[j] = hn::Max(second[j], hn::Min(best[j], x));
          best[j] = hn::Max(best[j], x);
        }
      }
      for (std::size_t j = 0; j < kWinnerVectors; ++j) {
        code[j] = hn::Or(code[j], hn::ShiftLeftSame(winner[j], place * static_cast<int>(f)));
        smallest[j] = hn::Min(smallest[j], hn::Sub(best[j], second[j]));
      }
    }
    for (std::size_t j = 0; j < kWinnerVectors; ++j) {
      hn::StoreU(code[j], bits, w.out + c * kCodeRows + first + j * kWidth);
    }
  }
  for (std::size_t j = 0; j < kWinnerVectors; ++j) {
    hn::StoreU(smallest[j], d, w.smallest + first + j * kWidth);
  }
}

void winner_codes(const WinnerCodes& w) {
  for (std::size_t first = 0; first < kCodeRows; first += kWinnerVectors * kWidth) winner_columns(w, first);
}

}  // namespace

void fill_codes(Kernels& table) {
  table.sign_codes = sign_codes;
  table.winner_codes = winner_codes;
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer::kernels {

static_assert((HWY_TARGETS) == (HWY_SSE4 | HWY_AVX2 | HWY_AVX3), "Isa and Highway's targets must agree");

void register_codes(Isa isa, Kernels& table) {
  register_for(isa, {N_SSE4::fill_codes, N_AVX2::fill_codes, N_AVX3::fill_codes}, table);
}

}  // namespace gossamer::kernels
#endif
