// SPDX-License-Identifier: Apache-2.0
//
// Normal numbers with the same bits on every CPU, for the weights that a network begins with: each of several
// peers makes the weights of its stage for itself. (Of 100,000 numbers of torch.randn 38,890 differ between a
// CPU with AVX2 and one without.)
//
// Thread rule: any thread; the caller owns `rng`.
#pragma once

#include <span>

#include "base/rng.h"

namespace gossamer::exact {

// Standard normal numbers times `deviation` (Box and Muller, 1958), two from each two numbers of `rng`. Of an
// odd count the last one is left out. So a range begins at an even element in whatever piece it is made.
void fill_normal(Rng& rng, double deviation, std::span<float> out);
void fill_normal(Rng& rng, double deviation, std::span<double> out);

}  // namespace gossamer::exact
