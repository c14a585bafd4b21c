// SPDX-License-Identifier: Apache-2.0
//
// WinnerHash: densified winner-take-all (Chen and Shrivastava, "Densified winner take all (WTA) hashing for
// sparse datasets", UAI 2018). It follows Yagnik et al., "The power of comparative reasoning", ICCV 2011. A
// function looks at `window` coordinates in a random order and answers with the place of the largest. So it
// depends on the order of coordinates only, not on their values, and resists scaling and outliers. One random
// permutation serves floor(dimension / window) functions.
//
// Coordinates that are exactly 0 are absent. A window without any present coordinate takes the answer of
// another (densify.h); the vector 0 has code 0 everywhere. Among equal coordinates the first in the window
// wins.
//
// A code is K places of log2(window) bits. Owner, thread rule: hash_family.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/lsh/hash_family.h"

namespace gossamer::lsh {

struct WinnerHashOptions {
  HashShape shape;         // K log2(window) <= 32
  std::size_t window = 8;  // a power of two, 2 <= window <= dimension
  std::uint64_t seed = 0;
  kernels::Isa isa = kernels::Isa::kScalar;
};

class WinnerHash final : public HashFamily {
 public:
  explicit WinnerHash(const WinnerHashOptions& options);

  // Cost: K L window comparisons for a vector without a 0; one with zeros is hashed by hash().
  void hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                  const BlockCodes& out) const override;
  // Cost: about K L window / dimension comparisons a coordinate, and the donors of empty windows.
  void hash(const data::SparseRow& vector, HashWorkspace& workspace,
            std::span<std::uint32_t> codes) const override;

 private:
  // The place of a coordinate: in the window of function `function`, at place `place`.
  struct Place {
    std::uint32_t function;
    std::uint32_t place;
  };

  const kernels::Kernels& kernels_;
  std::size_t window_;
  unsigned place_bits_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> index_;  // [K L][window]
  std::vector<std::uint32_t> begin_;  // [dimension + 1] into places_
  std::vector<Place> places_;         // of each coordinate, functions rising
};

}  // namespace gossamer::lsh
