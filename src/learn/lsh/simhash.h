// SPDX-License-Identifier: Apache-2.0
//
// SimHash: signs of random projections (Charikar, "Similarity estimation techniques from rounding
// algorithms", STOC 2002). The projections here are sparse, with entries +1, -1 and 0, which need additions
// only (Li, Hastie, Church, "Very sparse random projections", KDD 2006). Two vectors at angle theta agree in
// one bit with probability 1 - theta / pi. That is exact for Gaussian projections; for these it is the limit
// of many non-zero entries.
//
// A code is K such bits. Owner, thread rule: hash_family.h. The vector 0 has all bits set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "learn/lsh/hash_family.h"

namespace gossamer::lsh {

struct SimHashOptions {
  HashShape shape;  // K <= 32
  // The share of a projection's entries that are not 0, in (0, 1]. Each has round(density * dimension) of
  // them, at least 1. SLIDE takes a third.
  double density = 1.0 / 3;
  std::uint64_t seed = 0;
  kernels::Isa isa = kernels::Isa::kScalar;
};

class SimHash final : public HashFamily {
 public:
  explicit SimHash(const SimHashOptions& options);

  // Cost: K L terms() additions a vector.
  void hash_block(std::span<const float* const> rows, HashWorkspace& workspace,
                  const BlockCodes& out) const override;
  // Cost: K L multiply-adds a coordinate that is not 0.
  void hash(const data::SparseRow& vector, HashWorkspace& workspace,
            std::span<std::uint32_t> codes) const override;

  // Projections are linear: a caller that keeps those of a vector, [K L], follows its changes by adding the
  // projections of the change. That costs only the coordinates that changed. Start from zeros.
  void add_projections(const data::SparseRow& change, HashWorkspace& workspace,
                       std::span<float> projections) const;
  void codes_of(std::span<const float> projections, std::span<std::uint32_t> codes) const;

  // Entries of a projection that are not 0.
  [[nodiscard]] std::size_t terms() const { return terms_; }

 private:
  void project(const data::SparseRow& vector, HashWorkspace& workspace) const;

  const kernels::Kernels& kernels_;
  std::size_t terms_;
  std::size_t stride_;
  std::vector<std::uint32_t> index_;  // [K L][terms], increasing in a projection
  std::vector<float> sign_;           // beside index_
  AlignedArray<float> matrix_;  // [dimension][stride]: the same as a matrix, a column for each projection
};

}  // namespace gossamer::lsh
