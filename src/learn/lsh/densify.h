// SPDX-License-Identifier: Apache-2.0
//
// Densification: the answer of a bin that saw nothing of a sparse vector. It takes the answer of another bin,
// its donor, found by trying bins at random until one is not empty. The order of trials belongs to the bin,
// is drawn anew for each bin, and is the same for all vectors. Similar vectors have similar empty bins and
// find the same donors, so the collision probability stays what it was. This is "optimal densification":
// Shrivastava, "Optimal densification for fast and accurate minwise hashing", ICML 2017.
//
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/rng.h"

namespace gossamer::lsh {

struct Bins {
  std::size_t count;
  std::uint64_t seed;
};

// The first bin with filled(bin) in the order of `empty_bin`'s trials. Requires that there is one. Expected
// trials: count / filled bins.
template <class Filled>
[[nodiscard]] std::size_t donor_of(std::size_t empty_bin, const Bins& bins, Filled&& filled) {
  constexpr std::uint32_t kDonors = 1;
  Rng rng(bins.seed, Purpose::kHashFunctions, empty_bin, kDonors);
  while (true) {
    const std::size_t bin = (std::uint64_t{rng.next_u32()} * bins.count) >> 32;
    if (filled(bin)) return bin;
  }
}

}  // namespace gossamer::lsh
