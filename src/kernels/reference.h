// SPDX-License-Identifier: Apache-2.0
//
// The reference: every kernel as the plainest C++ that is right. Its table is that of Isa::kScalar; the
// vector bodies are tested against it, and it against double precision. Contracts: kernels.h. Thread rule: as
// kernels.h.
#pragma once

#include "kernels/kernels.h"

namespace gossamer::kernels::reference {

[[nodiscard]] Bf16 to_bf16(float x);
[[nodiscard]] float from_bf16(Bf16 x);

[[nodiscard]] Kernels table();

}  // namespace gossamer::kernels::reference
