// SPDX-License-Identifier: Apache-2.0
//
// The one place that talks to LIBXSMM, which generates machine code for a product of fixed shape at run time.
// Inside src/kernels only; all other code uses products.h.
//
// Thread rule: generate() on one thread at a time in the process; generated code from any thread.
// Owner: LIBXSMM's registry keeps the code until the process ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa.h"

namespace gossamer::kernels {

// C = A B or C += A B in the layouts of Multiply (kernels.h), all column-major.
struct GeneratedShape {
  std::size_t m, n, k;
  std::size_t lda, ldb, ldc;
};
enum class Destination { kOverwrite, kAdd };

// A generated product of unknown type; null stands for "there is none".
using GeneratedProduct = void (*)();

// Machine code for exactly this ISA, even where the CPU has a better one. Null where LIBXSMM has no kernel:
// kScalar and kSse4 by choice, and bf16 below AVX-512.
[[nodiscard]] GeneratedProduct generate(Isa isa, Element element, const GeneratedShape& shape,
                                        Destination destination);

// The product of unsigned bytes A, in groups of four ("VNNI-4": a [k/4][lda][4]), and signed bytes B. It is
// exact in 32 bits and overwrites C. Null where the CPU has no instruction for it.
[[nodiscard]] GeneratedProduct generate_bytes(Isa isa, const GeneratedShape& shape);

// Requires a product generated for the element type of the operands.
void call_generated(GeneratedProduct product, const float* a, const float* b, float* c);
void call_generated(GeneratedProduct product, const Bf16* a, const Bf16* b, float* c);
void call_generated(GeneratedProduct product, const std::uint8_t* a, const std::int8_t* b, std::int32_t* c);

}  // namespace gossamer::kernels
