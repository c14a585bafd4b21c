// SPDX-License-Identifier: Apache-2.0
#include "kernels/generated.h"

#include <libxsmm.h>

namespace gossamer::kernels {
namespace {

// The target to ask LIBXSMM for; unknown where it has no kernel. Asked for bf16 below AVX-512, it would
// answer with the code that it remembers for a stronger set.
int target_of(Isa isa, Element element) {
  if (element == Element::kBf16 && isa < Isa::kAvx512) return LIBXSMM_TARGET_ARCH_UNKNOWN;
  switch (isa) {
    case Isa::kAvx2: return LIBXSMM_X86_AVX2;
    case Isa::kAvx512: return LIBXSMM_X86_AVX512_CORE;
    case Isa::kAvx512Bf16: return LIBXSMM_X86_AVX512_CPX;
    case Isa::kScalar:
    case Isa::kSse4: break;
  }
  return LIBXSMM_TARGET_ARCH_UNKNOWN;
}

// LIBXSMM remembers generated code by shape and flags, not by instruction set. So the two sets that differ
// for one element type get different flags for prefetch arguments. The flag changes nothing but the
// signature: every call passes the three arguments that it stands for.
int prefetch_of(Isa isa, Element element) {
  const Isa strongest_apart = element == Element::kF32 ? Isa::kAvx512 : Isa::kAvx512Bf16;
  return isa >= strongest_apart ? LIBXSMM_GEMM_PREFETCH_NONE : LIBXSMM_GEMM_PREFETCH_SIGONLY;
}

// Generates code for one target while it lives.
class Target {
 public:
  explicit Target(int target) {
    libxsmm_init();
    previous_ = libxsmm_get_target_archid();
    libxsmm_set_target_archid(target);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() { libxsmm_set_target_archid(previous_); }

 private:
  int previous_;
};

}  // namespace

GeneratedProduct generate(Isa isa, Element element, const GeneratedShape& shape, Destination destination) {
  const int target_id = target_of(isa, element);
  if (target_id == LIBXSMM_TARGET_ARCH_UNKNOWN) return nullptr;
  const Target target(target_id);
  const auto m = static_cast<libxsmm_blasint>(shape.m);
  const auto n = static_cast<libxsmm_blasint>(shape.n);
  const auto k = static_cast<libxsmm_blasint>(shape.k);
  const auto lda = static_cast<libxsmm_blasint>(shape.lda);
  const auto ldb = static_cast<libxsmm_blasint>(shape.ldb);
  const auto ldc = static_cast<libxsmm_blasint>(shape.ldc);
  const float alpha = 1;
  const float beta = destination == Destination::kAdd ? 1.0F : 0.0F;
  const int prefetch = prefetch_of(isa, element);
  GeneratedProduct product = nullptr;
  if (element == Element::kF32) {
    const int flags = LIBXSMM_GEMM_FLAG_NONE;
    product = reinterpret_cast<GeneratedProduct>(
        libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch));
  } else {
    const int flags = LIBXSMM_GEMM_FLAG_VNNI_A;
    product = reinterpret_cast<GeneratedProduct>(
        libxsmm_bsmmdispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch));
  }
  return product;
}

GeneratedProduct generate_bytes(Isa isa, const GeneratedShape& shape) {
  if (isa < Isa::kAvx512 || __builtin_cpu_supports("avx512vnni") == 0) return nullptr;
  const Target target(LIBXSMM_X86_AVX512_CLX);  // the same code for both ISAs that come here
  const auto m = static_cast<libxsmm_blasint>(shape.m);
  const auto n = static_cast<libxsmm_blasint>(shape.n);
  const auto k = static_cast<libxsmm_blasint>(shape.k);
  const auto lda = static_cast<libxsmm_blasint>(shape.lda);
  const auto ldb = static_cast<libxsmm_blasint>(shape.ldb);
  const auto ldc = static_cast<libxsmm_blasint>(shape.ldc);
  const int alpha = 1;
  const int beta = 0;
  const int flags = LIBXSMM_GEMM_FLAG_VNNI_A;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  return reinterpret_cast<GeneratedProduct>(
      libxsmm_usbimmdispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch));
}

void call_generated(GeneratedProduct product, const float* a, const float* b, float* c) {
  reinterpret_cast<libxsmm_smmfunction>(product)(a, b, c, a, b, c);
}

void call_generated(GeneratedProduct product, const Bf16* a, const Bf16* b, float* c) {
  const auto* a_bits = reinterpret_cast<const libxsmm_bfloat16*>(a);
  const auto* b_bits = reinterpret_cast<const libxsmm_bfloat16*>(b);
  reinterpret_cast<libxsmm_bsmmfunction>(product)(a_bits, b_bits, c, a_bits, b_bits, c);
}

void call_generated(GeneratedProduct product, const std::uint8_t* a, const std::int8_t* b, std::int32_t* c) {
  const char* const signed_bytes = reinterpret_cast<const char*>(b);
  reinterpret_cast<libxsmm_usbimmfunction>(product)(a, signed_bytes, c, a, signed_bytes, c);
}

}  // namespace gossamer::kernels
