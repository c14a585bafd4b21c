// SPDX-License-Identifier: Apache-2.0
//
// InMemoryDataset: a small Dataset built record by record, for tests, examples and query batches.
//
//   InMemoryDataset set({.features = 10, .labels = 3});
//   set.add({1, 4}, {0.5F, 1.0F}, {2});
//
// Owner: the code that fills it. Thread rule: after the last add() any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/data/dataset.h"

namespace gossamer::data {

class InMemoryDataset final : public Dataset {
 public:
  struct Shape {
    std::uint32_t features = 0;
    std::uint32_t labels = 0;
    // Empty, or exactly one per feature or label.
    std::vector<std::string> feature_names = {};
    std::vector<std::string> label_names = {};
  };

  explicit InMemoryDataset(Shape shape) : shape_(std::move(shape)) {
    CHECK(shape_.feature_names.empty() || shape_.feature_names.size() == shape_.features);
    CHECK(shape_.label_names.empty() || shape_.label_names.size() == shape_.labels);
  }

  InMemoryDataset(InMemoryDataset&& other) noexcept
      : shape_(std::move(other.shape_)),
        feature_begin_(std::exchange(other.feature_begin_, {0})),
        label_begin_(std::exchange(other.label_begin_, {0})),
        index_(std::move(other.index_)),
        value_(std::move(other.value_)),
        label_(std::move(other.label_)) {}

  // Requires the invariants of rows.h and indices within the shape (checked).
  void add(const Record& record) {
    const auto& [index, value] = record.features;
    CHECK(index.size() == value.size(), index.size(), value.size());
    check_increasing(index, shape_.features);
    check_increasing(record.labels, shape_.labels);
    for (const float v : value) CHECK(std::isfinite(v), v);
    index_.insert(index_.end(), index.begin(), index.end());
    value_.insert(value_.end(), value.begin(), value.end());
    label_.insert(label_.end(), record.labels.begin(), record.labels.end());
    feature_begin_.push_back(index_.size());
    label_begin_.push_back(label_.size());
  }
  void add(const std::vector<std::uint32_t>& index, const std::vector<float>& value,
           const std::vector<std::uint32_t>& labels) {
    add({.features = {index, value}, .labels = labels});
  }

  [[nodiscard]] std::uint64_t size() const override { return feature_begin_.size() - 1; }
  [[nodiscard]] std::uint32_t features() const override { return shape_.features; }
  [[nodiscard]] std::uint32_t labels() const override { return shape_.labels; }
  [[nodiscard]] std::uint64_t feature_entries() const override { return index_.size(); }
  [[nodiscard]] std::uint64_t label_entries() const override { return label_.size(); }
  [[nodiscard]] Record record(RecordIndex i) const override {
    CHECK(i.value < size(), i.value, size());
    const std::size_t begin = feature_begin_[i.value];
    const std::size_t count = feature_begin_[i.value + 1] - begin;
    const std::size_t label = label_begin_[i.value];
    return {.features = {std::span(index_).subspan(begin, count), std::span(value_).subspan(begin, count)},
            .labels = std::span(label_).subspan(label, label_begin_[i.value + 1] - label)};
  }
  [[nodiscard]] std::string_view label_name(std::uint32_t label) const override {
    return has_label_names() ? std::string_view(shape_.label_names[label]) : std::string_view();
  }
  [[nodiscard]] std::string_view feature_name(std::uint32_t feature) const override {
    return has_feature_names() ? std::string_view(shape_.feature_names[feature]) : std::string_view();
  }
  [[nodiscard]] bool has_label_names() const override { return !shape_.label_names.empty(); }
  [[nodiscard]] bool has_feature_names() const override { return !shape_.feature_names.empty(); }

 private:
  static void check_increasing(std::span<const std::uint32_t> numbers, std::uint32_t bound) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CHECK(i == 0 || numbers[i - 1] < numbers[i], i, numbers[i]);
      CHECK(numbers[i] < bound, numbers[i], bound);
    }
  }

  Shape shape_;
  std::vector<std::size_t> feature_begin_ = {0};
  std::vector<std::size_t> label_begin_ = {0};
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
  std::vector<std::uint32_t> label_;
};

}  // namespace gossamer::data
