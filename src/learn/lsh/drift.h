// SPDX-License-Identifier: Apache-2.0
//
// DriftLedger: how far each row may still move before its codes can be wrong. A row starts with an allowance;
// each change takes its Euclidean length off; a row is due when nothing is left. By the triangle inequality a
// row that is not due lies within its allowance of where it was hashed, whatever the path. Subtractions round
// down, so that rounding errors make rows due early, never late.
//
// Owner: Tables. Thread rule: different rows may be used from different threads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gossamer::lsh {

class DriftLedger {
 public:
  // All rows due.
  explicit DriftLedger(std::size_t rows) : left_(rows, 0.0F) {}

  // The row has just been hashed. Requires allowance >= 0.
  void reset(std::size_t row, float allowance) { left_[row] = allowance; }
  // What is left of the row's allowance: reset() with it continues where this ledger stands.
  [[nodiscard]] float left(std::size_t row) const { return left_[row]; }
  // The row has moved by at most `length` >= 0; infinity makes it due. NaN makes it due.
  void moved(std::size_t row, float length) {
    const float left = std::nextafter(left_[row] - length, -std::numeric_limits<float>::infinity());
    left_[row] = left > 0 ? left : 0.0F;
  }
  [[nodiscard]] bool due(std::size_t row) const { return left_[row] <= 0; }
  [[nodiscard]] std::uint64_t bytes() const { return left_.size() * sizeof(float); }

 private:
  std::vector<float> left_;
};

}  // namespace gossamer::lsh
