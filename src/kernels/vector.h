// SPDX-License-Identifier: Apache-2.0
//
// The vector bodies' half of the kernel tables: one body per operation, compiled for SSE4, AVX2 and AVX-512.
// Inside src/kernels only; all other code asks kernels_for() (kernels.h).
// Thread rule: any thread; returns values.
#pragma once

#include "kernels/kernels.h"

namespace gossamer::kernels {

// vector_rows.cc: all but the layouts, products and hash codes, which stay null. Requires isa > kScalar and
// supported(isa): the function that fills the table is itself compiled for that instruction set.
[[nodiscard]] Kernels vector_rows(Isa isa);

// vector_layout.cc: fills transpose*, interleave_pairs and multiply*. Same requirement.
void add_vector_layout(Isa isa, Kernels& table);

// vector_codes.cc: fills sign_codes and winner_codes. Same requirement.
void add_vector_codes(Isa isa, Kernels& table);

}  // namespace gossamer::kernels
