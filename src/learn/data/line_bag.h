// SPDX-License-Identifier: Apache-2.0
//
// LineBag: the names of a line (items of a session so far, or words) as one sparse row, the later the
// heavier. With the last name at age 0,
//
//   value(x) = sum over the ages a < last at which x stands of decay^a
//
// The row is then scaled, so that long lines do not shout. Order beyond that is lost: it is a bag.
//
// Owner: one. The row is valid until the next call.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "learn/data/rows.h"

namespace gossamer::data {

enum class LineScale {
  kLength,  // to length 1
  kSum,     // to sum 1: the weighted mean
};

// How a line becomes a bag; a model keeps it, to read queries in the same way.
struct LineShape {
  std::uint32_t last = 10;  // names looked at, >= 1
  float decay = 0.7F;       // (0, 1]
  LineScale scale = LineScale::kLength;
  bool operator==(const LineShape&) const = default;
};

class LineBag {
 public:
  // Requires last >= 1 and 0 < decay <= 1 (checked).
  explicit LineBag(const LineShape& shape);

  // The bag of the names, which stand in the order of the line; no names give an empty row.
  [[nodiscard]] SparseRow row(std::span<const std::uint32_t> items);

 private:
  LineShape shape_;
  std::vector<std::pair<std::uint32_t, float>> pairs_;
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace gossamer::data
