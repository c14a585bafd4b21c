// SPDX-License-Identifier: Apache-2.0
//
// The reference: every kernel as the plainest C++ that is right. Its table serves Isa::kScalar. The vector
// bodies are tested against it, and it is tested against double precision. Contracts and thread rule:
// kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace gossamer::kernels::reference {

[[nodiscard]] Bf16 to_bf16(float x);
[[nodiscard]] float from_bf16(Bf16 x);

// The scale of a row rounded to bytes, and what its numbers are multiplied by (to_int8 in kernels.h), from
// the largest magnitude in it. factor = 0: all bytes are 0.
struct ByteScale {
  float scale;
  float factor;
};
[[nodiscard]] ByteScale byte_scale(float largest);

[[nodiscard]] Kernels table();

}  // namespace gossamer::kernels::reference
