// SPDX-License-Identifier: Apache-2.0
//
// The vector bodies' half of the kernel tables: one body per operation, compiled for SSE4, AVX2 and AVX-512.
// Inside src/kernels only; all other code asks kernels_for() (kernels.h).
// Thread rule: any thread; writes only the table.
#pragma once

#include "base/check.h"
#include "kernels/kernels.h"

namespace gossamer::kernels {

// Each file registers its functions for `isa` in the table. Requires isa > kScalar and supported(isa).
void register_rows(Isa isa, Kernels& table);    // vector_rows.cc: all that no other file has
void register_layout(Isa isa, Kernels& table);  // vector_layout.cc: transpose*, interleave_pairs, multiply*
void register_codes(Isa isa, Kernels& table);   // vector_codes.cc: sign_codes and winner_codes

// A file's registering function as compiled for each instruction set. It may only run on a CPU that has it.
struct Registering {
  void (*sse4)(Kernels& table);
  void (*avx2)(Kernels& table);
  void (*avx512)(Kernels& table);
};
inline void register_for(Isa isa, const Registering& functions, Kernels& table) {
  CHECK(isa > Isa::kScalar && supported(isa), name(isa));
  if (isa == Isa::kSse4) return functions.sse4(table);
  if (isa == Isa::kAvx2) return functions.avx2(table);
  functions.avx512(table);
}

}  // namespace gossamer::kernels
