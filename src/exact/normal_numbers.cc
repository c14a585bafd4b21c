// SPDX-License-Identifier: Apache-2.0
#include "exact/normal_numbers.h"

#include <cmath>
#include <cstddef>

#include "exact/exact_math.h"

namespace gossamer::exact {
namespace {

// In (0, 1], with 32 random bits, so that the logarithm is finite.
double positive_uniform(Rng& rng) { return (static_cast<double>(rng.next_u32()) + 1) * 0x1p-32; }

template <class T>
void fill(Rng& rng, double deviation, std::span<T> out) {
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = deviation * std::sqrt(-2 * logarithm(positive_uniform(rng)));
    const double turns = positive_uniform(rng);
    out[i] = static_cast<T>(radius * cosine(turns));
    if (i + 1 < out.size()) out[i + 1] = static_cast<T>(radius * sine(turns));
  }
}

}  // namespace

void fill_normal(Rng& rng, double deviation, std::span<float> out) { fill<float>(rng, deviation, out); }
void fill_normal(Rng& rng, double deviation, std::span<double> out) { fill<double>(rng, deviation, out); }

}  // namespace gossamer::exact
