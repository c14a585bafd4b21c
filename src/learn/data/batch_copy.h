// SPDX-License-Identifier: Apache-2.0
//
// BatchCopy: a step's samples with memory of their own, for as long as the step takes. (A source of samples
// keeps only one step's.) Allocates when a batch is larger than all before it.
//
// Thread rule: one owner; what it gives are views, until the next take().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/data/rows.h"

namespace gossamer::data {

class BatchCopy {
 public:
  void take(const Batch& batch) {
    copy(batch.features.begin, feature_begin_);
    copy(batch.features.index, feature_);
    copy(batch.features.value, value_);
    copy(batch.labels.begin, label_begin_);
    copy(batch.labels.label, label_);
  }
  [[nodiscard]] Batch view() const {
    return {.features = {feature_begin_, feature_, value_}, .labels = {label_begin_, label_}};
  }

 private:
  template <class T>
  static void copy(std::span<const T> from, std::vector<T>& to) {
    to.assign(from.begin(), from.end());
  }

  std::vector<std::uint32_t> feature_begin_;
  std::vector<std::uint32_t> feature_;
  std::vector<float> value_;
  std::vector<std::uint32_t> label_begin_;
  std::vector<std::uint32_t> label_;
};

}  // namespace gossamer::data
