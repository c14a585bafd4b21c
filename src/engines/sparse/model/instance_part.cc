// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/instance_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "base/check.h"
#include "engines/sparse/model/instance_index.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/model_tensors.h"
#include "engines/sparse/model/record_checks.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::string_view kFeatureBegin = "instances.feature_begin";
constexpr std::string_view kFeature = "instances.feature";
constexpr std::string_view kValue = "instances.value";
constexpr std::string_view kLabelBegin = "instances.label_begin";
constexpr std::string_view kLabel = "instances.label";
constexpr std::string_view kHidden = "instances.hidden";

// A tensor may lie at any address.
template <class T>
T at(const tensors::TensorView& tensor, std::size_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void append(const tensors::TensorView& tensor, const host::Range& range, std::vector<T>& out) {
  if (range.begin == range.end) return;
  const std::size_t size = out.size();
  out.resize(size + range.end - range.begin);
  std::memcpy(out.data() + size, tensor.bytes.data() + range.begin * sizeof(T),
              (range.end - range.begin) * sizeof(T));
}

// The workers that form centroids. Each has a double for each feature. More would finish sooner, but the
// memory for reading a part should not depend on the machine.
constexpr int kLengthWorkers = 4;

host::Range entries_of(const tensors::TensorView& begin, std::size_t row) {
  return {at<std::uint32_t>(begin, row), at<std::uint32_t>(begin, row + 1)};
}

}  // namespace

std::size_t instance_rows(std::size_t rows, const sparse::HeldRows& held) {
  std::size_t count = 0;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) {
    if (!held.holds(shard)) continue;
    const host::Range run = instance_run(rows, held.shards(), shard);
    count += run.end - run.begin;
  }
  return count;
}

bool holds_instance(std::size_t rows, const sparse::HeldRows& held, std::uint32_t number) {
  CHECK(number < rows && held.shards() > 0, number, rows, held.shards());
  // The division rounds down twice, so this may be the shard before the right one.
  std::size_t shard = std::size_t{number} * held.shards() / rows;
  while (instance_run(rows, held.shards(), shard).end <= number) ++shard;
  return held.holds(shard);
}

HeldFloats::HeldFloats(const sparse::HeldRows& held) : shift_(held.shift()) {
  std::size_t rows = 0;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) {
    begin_.push_back(rows);
    const host::Range own = held.rows_of(shard);
    if (held.holds(shard)) rows += own.end - own.begin;
  }
  value_.assign(rows, 0);
}

InstancePartReader::InstancePartReader(const ModelHeader& header, sparse::HeldRows held)
    : counts_(header.instances.value()),
      features_(header.features),
      labels_(header.labels),
      width_(network_shape(header).last_hidden()),
      held_(std::move(held)) {
  const auto expect = [this](std::string_view name, tensors::DType dtype, std::vector<std::uint64_t> shape) {
    expected_.emplace(name, Expected{.dtype = dtype, .shape = std::move(shape)});
  };
  expect(kFeatureBegin, tensors::DType::kU32, {counts_.rows + 1});
  expect(kFeature, tensors::DType::kU32, {counts_.feature_entries});
  expect(kValue, tensors::DType::kF32, {counts_.feature_entries});
  expect(kLabelBegin, tensors::DType::kU32, {counts_.rows + 1});
  expect(kLabel, tensors::DType::kU32, {counts_.label_entries});
  expect(kHidden, tensors::DType::kBf16, {counts_.rows, width_});
}

Result<void> InstancePartReader::add(const std::string& path, const std::string& name,
                                     const tensors::TensorView& tensor) {
  const auto found = expected_.find(name);
  if (found == expected_.end()) return {};
  const Expected& expected = found->second;
  if (tensor.dtype != expected.dtype || tensor.shape != expected.shape) {
    return bad_tensor(path, name,
                      fmt::format("{} [{}]", tensors::name(tensor.dtype), fmt::join(tensor.shape, ", ")),
                      fmt::format("{} [{}]", tensors::name(expected.dtype), fmt::join(expected.shape, ", ")));
  }
  const auto [first, fresh] = tensors_.emplace(name, Found{.path = path, .tensor = tensor});
  if (fresh) return {};
  return bad_tensor(path, name,
                    fmt::format("the same name in two shards, the other one {}", first->second.path),
                    "each tensor once");
}

const tensors::TensorView& InstancePartReader::tensor(std::string_view name) const {
  return tensors_.find(name)->second.tensor;
}

Error InstancePartReader::bad(std::string_view name, std::string got, std::string expected) const {
  return bad_tensor(tensors_.find(name)->second.path, name, std::move(got), std::move(expected));
}

Result<void> InstancePartReader::check_rows(const Rows& rows) const {
  const tensors::TensorView& begin = tensor(rows.begin);
  const tensors::TensorView& index = tensor(rows.index);
  const auto offset = [&](std::size_t i) { return at<std::uint32_t>(begin, i); };
  if (const auto wrong = wrong_offset(counts_.rows + 1, rows.entries, offset))
    return bad(rows.begin, wrong_offset_text(*wrong, offset(*wrong)), "rising offsets into the entries");
  const auto wrong = wrong_index(counts_.rows, rows.bound, offset,
                                 [&](std::size_t i) { return at<std::uint32_t>(index, i); });
  if (!wrong) return {};
  const std::size_t record = row_of_entry(counts_.rows, *wrong, offset);
  return bad(rows.index, wrong_index_text(record, *wrong, at<std::uint32_t>(index, *wrong)),
             fmt::format("rising indices below {}", rows.bound));
}

Result<void> InstancePartReader::check(const std::string& directory) const {
  for (const auto& [name, expected] : expected_) {
    if (!tensors_.contains(name))
      return bad_tensor(directory, name, "nothing", "the tensor in one of the shards");
  }
  for (const Rows& rows : {Rows{kFeatureBegin, counts_.feature_entries, kFeature, features_},
                           Rows{kLabelBegin, counts_.label_entries, kLabel, labels_}}) {
    if (auto good = check_rows(rows); !good.ok()) return good;
  }
  for (std::size_t i = 0; i < counts_.feature_entries; ++i) {
    if (!std::isfinite(at<float>(tensor(kValue), i)))
      return bad(kValue, not_finite(tensor(kValue)), "finite numbers");
  }
  return {};
}

std::vector<std::uint8_t> InstancePartReader::dense_features() const {
  std::vector<std::uint32_t> size(features_, 0);
  for (std::size_t i = 0; i < counts_.feature_entries; ++i) ++size[at<std::uint32_t>(tensor(kFeature), i)];
  std::vector<std::uint8_t> dense(features_, 0);
  for (std::size_t f = 0; f < features_; ++f)
    dense[f] = static_cast<std::uint8_t>(is_dense(size[f], counts_.rows));
  return dense;
}

// All rows of the model with each held label, rising.
InstancePartReader::LabelRows InstancePartReader::rows_of_labels() const {
  LabelRows rows;
  rows.begin.assign(labels_ + 1, 0);
  const tensors::TensorView& label = tensor(kLabel);
  for (std::size_t i = 0; i < counts_.label_entries; ++i) {
    const auto l = at<std::uint32_t>(label, i);
    if (held_.contains(l)) ++rows.begin[l + 1];
  }
  for (std::size_t l = 0; l < labels_; ++l) rows.begin[l + 1] += rows.begin[l];
  rows.row.resize(rows.begin.back());
  std::vector<std::uint32_t> next(rows.begin.begin(), rows.begin.end() - 1);
  for (std::size_t r = 0; r < counts_.rows; ++r) {
    const host::Range own = entries_of(tensor(kLabelBegin), r);
    for (std::size_t i = own.begin; i < own.end; ++i) {
      const auto l = at<std::uint32_t>(label, i);
      if (held_.contains(l)) rows.row[next[l]++] = static_cast<std::uint32_t>(r);
    }
  }
  return rows;
}

HeldFloats InstancePartReader::inverse_lengths(host::Compute& compute) const {
  const LabelRows rows = rows_of_labels();
  HeldFloats inverse(held_);
  const int workers = std::min(compute.workers(), kLengthWorkers);
  compute.run([&](int worker) {
    if (worker >= workers) return;
    CentroidLengths lengths(features_);
    std::vector<std::uint32_t> index;
    std::vector<float> value;
    for (std::size_t label = static_cast<std::size_t>(worker); label < labels_;
         label += static_cast<std::size_t>(workers)) {
      if (!held_.contains(static_cast<std::uint32_t>(label))) continue;
      for (std::uint32_t i = rows.begin[label]; i < rows.begin[label + 1]; ++i) {
        const host::Range entries = entries_of(tensor(kFeatureBegin), rows.row[i]);
        index.clear();
        value.clear();
        append(tensor(kFeature), entries, index);
        append(tensor(kValue), entries, value);
        lengths.add({index, value});
      }
      inverse.of(static_cast<std::uint32_t>(label)) = lengths.take_inverse();
    }
  });
  return inverse;
}

void InstancePartReader::reserve(InstancePart& part) const {
  std::size_t features = 0;
  std::size_t labels = 0;
  for (std::size_t shard = 0; shard < held_.shards(); ++shard) {
    if (!held_.holds(shard)) continue;
    const host::Range run = instance_run(counts_.rows, held_.shards(), shard);
    for (std::size_t r = run.begin; r < run.end; ++r) {
      const host::Range of_features = entries_of(tensor(kFeatureBegin), r);
      const host::Range of_labels = entries_of(tensor(kLabelBegin), r);
      features += of_features.end - of_features.begin;
      labels += of_labels.end - of_labels.begin;
    }
  }
  const std::size_t rows = instance_rows(counts_.rows, held_);
  part.number.reserve(rows);
  part.rows.feature_begin.reserve(rows + 1);
  part.rows.label_begin.reserve(rows + 1);
  part.rows.feature.reserve(features);
  part.rows.value.reserve(features);
  part.rows.label.reserve(labels);
}

void InstancePartReader::take_run(const host::Range& run, InstancePart& part) const {
  Instances& rows = part.rows;
  for (std::size_t r = run.begin; r < run.end; ++r) {
    part.number.push_back(static_cast<std::uint32_t>(r));
    const host::Range features = entries_of(tensor(kFeatureBegin), r);
    append(tensor(kFeature), features, rows.feature);
    append(tensor(kValue), features, rows.value);
    rows.feature_begin.push_back(static_cast<std::uint32_t>(rows.feature.size()));
    append(tensor(kLabel), entries_of(tensor(kLabelBegin), r), rows.label);
    rows.label_begin.push_back(static_cast<std::uint32_t>(rows.label.size()));
  }
}

Result<InstancePart> InstancePartReader::finish(const std::string& directory, host::Compute& compute) const {
  if (auto good = check(directory); !good.ok()) return good.error();
  InstancePart part;
  part.dense = dense_features();
  part.inverse_lengths = inverse_lengths(compute);
  reserve(part);
  part.rows.feature_begin.push_back(0);
  part.rows.label_begin.push_back(0);
  part.rows.hidden = AlignedArray<kernels::Bf16>(instance_rows(counts_.rows, held_) * width_);
  std::span<std::byte> hidden = std::as_writable_bytes(part.rows.hidden.span());
  const std::size_t row_bytes = width_ * sizeof(kernels::Bf16);
  for (std::size_t shard = 0; shard < held_.shards(); ++shard) {
    if (!held_.holds(shard)) continue;
    const host::Range run = instance_run(counts_.rows, held_.shards(), shard);
    take_run(run, part);
    const auto from = tensor(kHidden).bytes.subspan(run.begin * row_bytes, (run.end - run.begin) * row_bytes);
    std::ranges::copy(from, hidden.begin());
    hidden = hidden.subspan(from.size());
  }
  if (!all_finite(std::as_const(part.rows.hidden).span()))
    return bad(kHidden, not_finite(tensor(kHidden)), "finite numbers");
  return part;
}

}  // namespace gossamer::sparse_engine
