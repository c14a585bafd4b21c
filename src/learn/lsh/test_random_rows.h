// SPDX-License-Identifier: Apache-2.0
//
// For tests: a layer's rows, and moves of known length. Thread rule: one owner.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "learn/lsh/tables.h"

namespace gossamer::lsh {

// The length of a move that could be any.
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

class RandomRows {
 public:
  // Padding is NaN: no function may read it.
  RandomRows(std::size_t rows, std::size_t dimension, std::uint64_t stream)
      : rows_(rows),
        dimension_(dimension),
        rng_(stream, Purpose::kTest, 31),
        data_(rows * (dimension + 3), std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (float& x : row(r)) x = rng_.normal();
    }
  }

  [[nodiscard]] RowsView view() const {
    return {.data = data_.data(), .rows = rows_, .stride = dimension_ + 3};
  }
  [[nodiscard]] std::span<float> row(std::size_t r) {
    return {data_.data() + r * (dimension_ + 3), dimension_};
  }
  // Adds normal numbers times `scale`; returns the length of the move, rounded up.
  float move(std::size_t r, float scale) {
    double sum = 0;
    for (float& x : row(r)) {
      const float before = x;
      x += scale * rng_.normal();
      const double step = static_cast<double>(x) - static_cast<double>(before);
      sum += step * step;
    }
    return std::nextafter(static_cast<float>(std::sqrt(sum)), kInfinity);
  }
  [[nodiscard]] Rng& rng() { return rng_; }

 private:
  std::size_t rows_;
  std::size_t dimension_;
  Rng rng_;
  std::vector<float> data_;
};

// The keys of all rows in all tables, [L][rows].
inline std::vector<std::vector<std::uint32_t>> all_keys(const Tables& tables) {
  std::vector<std::vector<std::uint32_t>> keys(tables.tables(), std::vector<std::uint32_t>(tables.rows()));
  for (std::size_t t = 0; t < tables.tables(); ++t) tables.row_keys(t, keys[t]);
  return keys;
}

}  // namespace gossamer::lsh
