// SPDX-License-Identifier: Apache-2.0
//
// Cosine, logarithm, exponential and power with the same bits on every CPU. The functions of libm choose
// their code by the CPU, and the last bit of a result differs. Here each result comes from multiplications,
// additions and divisions in a fixed order, each rounded once (IEEE 754).
//
// Requires the default rounding mode (floating_modes.h). Thread rule: any thread.
#pragma once

#include <cstdint>

namespace gossamer::exact {

// cos(2 pi turns). Requires |turns| < 2^52. Error at most 4e-16.
[[nodiscard]] double cosine(double turns);
// sin(2 pi turns), with the same error.
[[nodiscard]] double sine(double turns);

// The natural logarithm. Requires `x` to be positive, finite and no denormal number. Error at most 4e-16 for
// results up to 1, relative above.
[[nodiscard]] double logarithm(double x);

// e^x. Requires x <= 709. Below -708 it is 0: the result would be no normal number. The relative error is at
// most 4e-16, and e^0 is 1.
[[nodiscard]] double exponential(double x);

// base^exponent by repeated squaring. The relative error is about 1e-16 times the exponent.
[[nodiscard]] double power(double base, std::uint64_t exponent);

}  // namespace gossamer::exact
