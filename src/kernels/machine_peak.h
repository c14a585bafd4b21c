// SPDX-License-Identifier: Apache-2.0
//
// Loops that do nothing but reach what this core can do at best, for reports of how much of it a kernel uses.
//
// Thread rule: pure functions on the caller's memory. Owner: none.
#pragma once

#include <cstddef>

#include "kernels/isa.h"

namespace gossamer::kernels {

// `rounds` rounds of independent multiply-adds on registers; returns a value that depends on all of them, so
// that none can be left out. kScalar counts as kSse4 (two instructions each below kAvx2).
[[nodiscard]] float multiply_add_loop(Isa isa, std::size_t rounds);
// Floating-point operations of one round: two for each lane of each multiply-add.
[[nodiscard]] std::size_t multiply_add_flops(Isa isa);

// a[i] = b[i] + s c[i], the triad of McCalpin's STREAM; n is a multiple of kLanes (kernels.h). Moves 12 bytes
// an element, as STREAM counts.
struct Triad {
  float* a;
  const float* b;
  const float* c;
  float s;
  std::size_t n;
};
void triad(Isa isa, const Triad& arrays);

}  // namespace gossamer::kernels
