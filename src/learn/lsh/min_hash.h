// SPDX-License-Identifier: Apache-2.0
//
// MinHash: densified one-permutation hashing (DOPH) of sets. (Li, Owen, Zhang, "One permutation hashing",
// NIPS 2012. Shrivastava, "Optimal densification for fast and accurate minwise hashing", ICML 2017.) One
// random permutation of the universe is cut into K L bins. A function answers with the set's least element in
// its bin; an empty bin takes another bin's answer (densify.h). Two sets agree in a function with probability
// equal to their Jaccard similarity J = |A and B| / |A or B|. Answers are kept to `bits` bits (Li and Koenig,
// "b-bit minwise hashing", WWW 2010), which makes it J + (1 - J) / 2^bits.
//
// The set of a sparse vector is its indices. The set of a dense vector is its `top` largest coordinates, of
// equal ones those with smaller indices, as SLIDE does. The empty set has code 0 everywhere.
//
// A code is K answers. Owner, thread rule: hash_family.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "learn/lsh/hash_family.h"

namespace gossamer::lsh {

struct MinHashOptions {
  HashShape shape;       // dimension: the universe, up to 2^32; K bits <= 32
  std::size_t bits = 3;  // of an answer
  std::size_t top = 32;  // largest coordinates of a dense vector that make its set, 1 <= top <= dimension
  std::uint64_t seed = 0;
};

class MinHash final : public HashFamily {
 public:
  explicit MinHash(const MinHashOptions& options);

  // Cost: a selection and `top` random numbers a vector.
  void hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                  const BlockCodes& out) const override;
  // Values do not matter, not even 0. Cost: one random number an index, and the donors of empty bins.
  void hash(const data::SparseRow& vector, HashWorkspace& workspace,
            std::span<std::uint32_t> codes) const override;
  void hash_dense(std::span<const float> vector, HashWorkspace& workspace,
                  std::span<std::uint32_t> codes) const override;

 private:
  void hash_set(std::span<const std::uint32_t> set, HashWorkspace& workspace,
                std::span<std::uint32_t> codes) const;
  // The dense vector's set, in workspace.index; returns by how much it may move and keep it.
  float select_top(std::span<const float> vector, HashWorkspace& workspace) const;

  std::size_t bits_;
  std::size_t top_;
  std::uint64_t seed_;
  std::array<std::uint32_t, 2> key_;  // of the permutation
};

}  // namespace gossamer::lsh
