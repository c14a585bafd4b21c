// SPDX-License-Identifier: Apache-2.0
//
// SessionBag: the items of a session so far as one sparse row, the newer the heavier. With the newest item at
// age 0,
//
//   value(x) = sum over the ages a < last at which x stands of decay^a
//
// scaled to length 1, so that long sessions do not shout. Order beyond that is lost: it is a bag.
//
// Owner: one. The row is valid until the next call.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "learn/data/rows.h"

namespace gossamer::data {

// How a session becomes a bag; a model keeps it to read queries alike.
struct SessionShape {
  std::uint32_t last = 10;  // items looked at, >= 1
  float decay = 0.7F;       // (0, 1]
  bool operator==(const SessionShape&) const = default;
};

class SessionBag {
 public:
  // Requires last >= 1 and 0 < decay <= 1 (checked).
  explicit SessionBag(const SessionShape& shape);

  // Items from the oldest to the newest; none gives an empty row.
  [[nodiscard]] SparseRow row(std::span<const std::uint32_t> items);

 private:
  SessionShape shape_;
  std::vector<std::pair<std::uint32_t, float>> pairs_;
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

}  // namespace gossamer::data
