// SPDX-License-Identifier: Apache-2.0
//
// Isa: the instruction sets the kernels are built for, in rising order, and which of them this CPU runs.
// Element: the number type of the panel products (products.h).
//
// The binary itself needs x86-64-v2 only. kScalar is plain C++ and is the reference that the others are
// tested against; kSse4 is what every x86-64-v2 machine has. Thread rule: all functions may be called from
// any thread. Owner: none, plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace gossamer::kernels {

enum class Isa {
  kScalar,      // reference functions in plain C++
  kSse4,        // SSSE3 and SSE4.1
  kAvx2,        // AVX2, FMA, BMI2, F16C
  kAvx512,      // AVX-512 F, CD, BW, DQ, VL
  kAvx512Bf16,  // kAvx512 and native bf16 pair products (AVX-512 BF16)
};

inline constexpr std::array kAllIsas = {Isa::kScalar, Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

// Whether this CPU and this operating system run it. kScalar always is.
[[nodiscard]] bool supported(Isa isa);

// The last of kAllIsas that is supported.
[[nodiscard]] Isa best_isa();

// "scalar", "sse4", "avx2", "avx512", "avx512-bf16".
[[nodiscard]] std::string_view name(Isa isa);

// The inverse of name(), and "auto" for best_isa(). Errors (kUsage): unknown word; an ISA that this CPU
// lacks.
[[nodiscard]] Result<Isa> parse_isa(std::string_view text);

// The upper half of a float: 8 bits of significand. Rounded to nearest even by to_bf16 (kernels.h).
struct Bf16 {
  std::uint16_t bits = 0;
  bool operator==(const Bf16&) const = default;
};

enum class Element { kF32, kBf16 };

// "f32", "bf16".
[[nodiscard]] std::string_view name(Element element);

// The element type with the fastest products: bf16 where the CPU multiplies bf16 pairs natively, else f32.
// (AVX-512 without BF16 emulates the pair product at two thirds of the speed of f32.)
[[nodiscard]] Element preferred_element(Isa isa);

}  // namespace gossamer::kernels
