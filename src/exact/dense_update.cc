// SPDX-License-Identifier: Apache-2.0
//
// The vector bodies below are compiled once per target of Highway: foreach_target.h includes this file again.
#include "exact/dense_update.h"

// As in src/kernels: the targets are those that Isa knows.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exact/dense_update.cc"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <array>

#include "base/check.h"
#include "exact/element_update.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer::exact {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void adamw(const AdamWTensor<T>& t, const AdamWFactors<T>& f) {
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, f.gradient_scale);
  const auto keep = hn::Set(d, f.weight_scale);
  const auto beta2 = hn::Set(d, f.beta2);
  const auto one_minus_beta1 = hn::Set(d, f.one_minus_beta1);
  const auto one_minus_beta2 = hn::Set(d, f.one_minus_beta2);
  const auto step_size = hn::Set(d, f.step_size);
  const auto root_bias2 = hn::Set(d, f.root_bias2);
  const auto epsilon = hn::Set(d, f.epsilon);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= t.n; i += hn::Lanes(d)) {
    const auto g = hn::Mul(scale, hn::LoadU(d, t.gradients + i));
    const auto old = hn::LoadU(d, t.first + i);
    const auto first = hn::Add(old, hn::Mul(one_minus_beta1, hn::Sub(g, old)));
    const auto second =
        hn::Add(hn::Mul(beta2, hn::LoadU(d, t.second + i)), hn::Mul(hn::Mul(one_minus_beta2, g), g));
    const auto root = hn::Add(hn::Div(hn::Sqrt(second), root_bias2), epsilon);
    const auto move = hn::Div(hn::Mul(step_size, first), root);
    hn::StoreU(first, d, t.first + i);
    hn::StoreU(second, d, t.second + i);
    hn::StoreU(hn::Sub(hn::Mul(keep, hn::LoadU(d, t.weights + i)), move), d, t.weights + i);
  }
  for (; i < t.n; ++i) adamw_element(t, f, i);
}

template <class D>
auto load_wide(D d, const double* x) {
  return hn::LoadU(d, x);
}
template <class D>
auto load_wide(D d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), x));
}

// Vectors of eight doubles at most; each instruction set has kSumLanes in a whole number of them.
template <class T>
double squared_sum(const T* x, std::size_t n) {
  const hn::ScalableTag<double> d;
  constexpr std::size_t kWidth = HWY_MAX_BYTES / sizeof(double);
  constexpr std::size_t kVectors = kSumLanes / kWidth;
  static_assert(kSumLanes % kWidth == 0);
  std::array<double, kSumLanes> sums{};
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (std::size_t k = 0; k < kVectors; ++k) {
      const auto wide = load_wide(d, x + i + k * kWidth);
      double* const lanes = sums.data() + k * kWidth;
      hn::StoreU(hn::Add(hn::LoadU(d, lanes), hn::Mul(wide, wide)), d, lanes);
    }
  }
  return finish_squared_sum(sums, x, i, n);
}

}  // namespace

DenseUpdate<float> float_update() { return {.adamw = adamw<float>, .squared_sum = squared_sum<float>}; }
DenseUpdate<double> double_update() { return {.adamw = adamw<double>, .squared_sum = squared_sum<double>}; }

}  // namespace HWY_NAMESPACE
}  // namespace gossamer::exact
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer::exact {
namespace {

using kernels::Isa;

static_assert((HWY_TARGETS) == (HWY_SSE4 | HWY_AVX2 | HWY_AVX3), "Isa and Highway's targets must agree");

template <class T>
void plain_adamw(const AdamWTensor<T>& tensor, const AdamWFactors<T>& factors) {
  for (std::size_t i = 0; i < tensor.n; ++i) adamw_element(tensor, factors, i);
}
template <class T>
double plain_squared_sum(const T* x, std::size_t n) {
  return finish_squared_sum({}, x, 0, n);
}
template <class T>
constexpr DenseUpdate<T> kPlain = {.adamw = plain_adamw<T>, .squared_sum = plain_squared_sum<T>};

// The functions of one instruction set as compiled for it. They may only run on a CPU that has it.
template <class T>
struct Bodies {
  DenseUpdate<T> (*sse4)();
  DenseUpdate<T> (*avx2)();
  DenseUpdate<T> (*avx512)();
};
template <class T>
DenseUpdate<T> table_of(Isa isa, const Bodies<T>& bodies) {
  if (isa == Isa::kScalar || !kernels::supported(isa)) return kPlain<T>;
  if (isa == Isa::kSse4) return bodies.sse4();
  return isa == Isa::kAvx2 ? bodies.avx2() : bodies.avx512();
}

template <class T>
using Tables = std::array<DenseUpdate<T>, kernels::kAllIsas.size()>;
template <class T>
Tables<T> all_tables(const Bodies<T>& bodies) {
  Tables<T> tables;
  for (const Isa isa : kernels::kAllIsas) tables[static_cast<std::size_t>(isa)] = table_of(isa, bodies);
  return tables;
}

}  // namespace

template <>
const DenseUpdate<float>& dense_update<float>(Isa isa) {
  CHECK(kernels::supported(isa), kernels::name(isa));
  static const auto tables =
      all_tables<float>({N_SSE4::float_update, N_AVX2::float_update, N_AVX3::float_update});
  return tables[static_cast<std::size_t>(isa)];
}
template <>
const DenseUpdate<double>& dense_update<double>(Isa isa) {
  CHECK(kernels::supported(isa), kernels::name(isa));
  static const auto tables =
      all_tables<double>({N_SSE4::double_update, N_AVX2::double_update, N_AVX3::double_update});
  return tables[static_cast<std::size_t>(isa)];
}

}  // namespace gossamer::exact
#endif
