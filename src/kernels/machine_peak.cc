// SPDX-License-Identifier: Apache-2.0
//
// Compiled once per target of Highway, as vector_rows.cc.
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/machine_peak.cc"
// clang-format off
#include <hwy/foreach_target.h>
// clang-format on
#include "kernels/machine_peak.h"

#include <hwy/highway.h>

#include "base/check.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Ten chains: more than latency times throughput of the multiply-adds of any CPU, and few enough for 16
// registers.
std::size_t flops() { return std::size_t{2} * 10 * hn::Lanes(hn::ScalableTag<float>()); }

float multiply_adds(std::size_t rounds) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999F);
  const auto y = hn::Set(d, 0.001F);
  auto s0 = hn::Iota(d, 0.0F), s1 = hn::Iota(d, 0.1F), s2 = hn::Iota(d, 0.2F), s3 = hn::Iota(d, 0.3F);
  auto s4 = hn::Iota(d, 0.4F), s5 = hn::Iota(d, 0.5F), s6 = hn::Iota(d, 0.6F), s7 = hn::Iota(d, 0.7F);
  auto s8 = hn::Iota(d, 0.8F), s9 = hn::Iota(d, 0.9F);
  for (std::size_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, x, y);
    s1 = hn::MulAdd(s1, x, y);
    s2 = hn::MulAdd(s2, x, y);
    s3 = hn::MulAdd(s3, x, y);
    s4 = hn::MulAdd(s4, x, y);
    s5 = hn::MulAdd(s5, x, y);
    s6 = hn::MulAdd(s6, x, y);
    s7 = hn::MulAdd(s7, x, y);
    s8 = hn::MulAdd(s8, x, y);
    s9 = hn::MulAdd(s9, x, y);
  }
  const auto low = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(s4, s5));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, hn::Add(hn::Add(s6, s7), hn::Add(s8, s9)))));
}

void triad(const Triad& t) {
  const hn::ScalableTag<float> d;
  const auto s = hn::Set(d, t.s);
  for (std::size_t i = 0; i < t.n; i += hn::Lanes(d)) {
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, t.c + i), hn::LoadU(d, t.b + i)), d, t.a + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gossamer::kernels {

float multiply_add_loop(Isa isa, std::size_t rounds) {
  CHECK(supported(isa), name(isa));
  if (isa <= Isa::kSse4) return N_SSE4::multiply_adds(rounds);
  return isa == Isa::kAvx2 ? N_AVX2::multiply_adds(rounds) : N_AVX3::multiply_adds(rounds);
}

std::size_t multiply_add_flops(Isa isa) {
  CHECK(supported(isa), name(isa));
  if (isa <= Isa::kSse4) return N_SSE4::flops();
  return isa == Isa::kAvx2 ? N_AVX2::flops() : N_AVX3::flops();
}

void triad(Isa isa, const Triad& arrays) {
  CHECK(supported(isa), name(isa));
  if (isa <= Isa::kSse4) return N_SSE4::triad(arrays);
  if (isa == Isa::kAvx2) return N_AVX2::triad(arrays);
  N_AVX3::triad(arrays);
}

}  // namespace gossamer::kernels
#endif
