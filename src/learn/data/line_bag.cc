// SPDX-License-Identifier: Apache-2.0
#include "learn/data/line_bag.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace gossamer::data {

LineBag::LineBag(const LineShape& shape) : shape_(shape) {
  CHECK(shape.last >= 1 && shape.decay > 0 && shape.decay <= 1, shape.last, shape.decay);
}

SparseRow LineBag::row(std::span<const std::uint32_t> items) {
  pairs_.clear();
  index_.clear();
  value_.clear();
  float weight = 1;
  const std::size_t count = std::min<std::size_t>(items.size(), shape_.last);
  for (std::size_t age = 0; age < count; ++age, weight *= shape_.decay) {
    pairs_.emplace_back(items[items.size() - 1 - age], weight);
  }
  // Equal items stand together, the newest first whatever the sort does with equal weights.
  std::ranges::sort(pairs_, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  for (const auto& [item, value] : pairs_) {
    if (!index_.empty() && index_.back() == item) {
      value_.back() += value;
    } else {
      index_.push_back(item);
      value_.push_back(value);
    }
  }
  float total = 0;
  for (const float v : value_) total += shape_.scale == LineScale::kSum ? v : v * v;
  if (shape_.scale == LineScale::kLength) total = std::sqrt(total);
  for (float& v : value_) v /= total;
  return {index_, value_};
}

}  // namespace gossamer::data
