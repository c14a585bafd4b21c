// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/instance_index.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

// Lists whose next entry is fetched ahead of its turn.
constexpr std::size_t kAhead = 2;
constexpr std::uint32_t kSparse = std::numeric_limits<std::uint32_t>::max();

// With fewer rows no column is worth being dense.
constexpr std::size_t kLeastRows = 128;

// Sums of cosines count in units of 1 / kCosineUnits.
constexpr double kCosineUnits = 8589934592.0;  // 2^33

std::uint64_t in_units(float cosine) {
  constexpr float kMost = 1 << 20;  // cosines are far below; neither infinity nor NaN is
  if (!(std::abs(cosine) <= kMost)) return 0;
  return static_cast<std::uint64_t>(std::llrint(static_cast<double>(cosine) * kCosineUnits));
}

// The offsets of lists by id: begin[i + 1] - begin[i] is the number of entries of i in `ids`.
std::vector<std::uint32_t> list_offsets(std::span<const std::uint32_t> ids, std::size_t bound) {
  std::vector<std::uint32_t> begin(bound + 1, 0);
  for (const std::uint32_t id : ids) ++begin[id + 1];
  for (std::size_t i = 0; i < bound; ++i) begin[i + 1] += begin[i];
  return begin;
}

}  // namespace

bool is_dense(std::uint32_t rows_with_it, std::size_t rows) {
  return rows_with_it > std::max(rows, kLeastRows) / kDenseShare;
}

float centroid_cosine(std::int64_t sum, float inverse_length) {
  return static_cast<float>(static_cast<double>(sum) / kCosineUnits) * inverse_length;
}

void CentroidLengths::add(const data::SparseRow& row) {
  for (std::size_t j = 0; j < row.index.size(); ++j) {
    if (sum_[row.index[j]] == 0) touched_.push_back(row.index[j]);
    sum_[row.index[j]] += static_cast<double>(row.value[j]);
  }
}

float CentroidLengths::take_inverse() {
  double squares = 0;
  for (const std::uint32_t feature : touched_) {
    squares += sum_[feature] * sum_[feature];
    sum_[feature] = 0;  // a feature whose sum was 0 in between stands here twice
  }
  touched_.clear();
  const auto inverse = static_cast<float>(1 / std::sqrt(squares));
  return std::isfinite(inverse) ? inverse : 0;  // rows that cancel out have no direction
}

InstanceIndex::InstanceIndex(const Instances& instances, IndexShape shape, const kernels::Kernels& kernels,
                             host::Compute& compute)
    : shape_(shape), kernels_(kernels), segments_((instances.rows() + kSegment - 1) / kSegment) {
  CHECK(instances.label_begin.size() == instances.feature_begin.size(), instances.label_begin.size(),
        instances.feature_begin.size());
  const data::SparseRows rows = instances.features();
  std::vector<std::uint32_t> size(shape.features, 0);
  for (const std::uint32_t feature : rows.index) ++size[feature];
  std::vector<std::uint8_t> dense(shape.features, 0);
  for (std::size_t f = 0; f < shape.features; ++f)
    dense[f] = static_cast<std::uint8_t>(is_dense(size[f], rows.rows()));
  build_columns(rows, dense);
  build_label_rows(instances.labels());
  build_centroid_norms(rows, compute);
}

InstanceIndex::InstanceIndex(const Instances& part, IndexShape shape, std::span<const std::uint8_t> dense,
                             const kernels::Kernels& kernels)
    : shape_(shape), kernels_(kernels), segments_((part.rows() + kSegment - 1) / kSegment) {
  CHECK(dense.size() == shape.features && part.label_begin.size() == part.feature_begin.size(), dense.size(),
        shape.features);
  build_columns(part.features(), dense);
  build_label_rows(part.labels());
}

void InstanceIndex::build_columns(const data::SparseRows& rows, std::span<const std::uint8_t> dense) {
  std::vector<std::uint32_t> size(shape_.features, 0);
  for (const std::uint32_t feature : rows.index) ++size[feature];
  dense_column_.assign(shape_.features, kSparse);
  column_begin_.assign(shape_.features + 1, 0);
  for (std::size_t f = 0; f < shape_.features; ++f) {
    if (dense[f] != 0) dense_column_[f] = static_cast<std::uint32_t>(dense_columns_++);
    column_begin_[f + 1] = column_begin_[f] + (dense[f] != 0 ? 0 : size[f]);
  }
  dense_ = AlignedArray<float>(segments_ * dense_columns_ * kSegment);
  entry_.resize(column_begin_.back());
  std::vector<std::uint32_t> next(column_begin_.begin(), column_begin_.end() - 1);
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    const data::SparseRow row = rows.row(r);
    for (std::size_t i = 0; i < row.index.size(); ++i) {
      const std::uint32_t feature = row.index[i];
      if (const std::uint32_t column = dense_column_[feature]; column != kSparse) {
        dense_[(r / kSegment * dense_columns_ + column) * kSegment + r % kSegment] = row.value[i];
      } else {
        entry_[next[feature]++] = {static_cast<std::uint32_t>(r), row.value[i]};
      }
    }
  }
}

void InstanceIndex::build_label_rows(const data::LabelSets& sets) {
  label_row_begin_ = list_offsets(sets.label, shape_.labels);
  label_row_.resize(sets.label.size());
  std::vector<std::uint32_t> next(label_row_begin_.begin(), label_row_begin_.end() - 1);
  for (std::size_t r = 0; r < sets.rows(); ++r) {
    for (const std::uint32_t label : sets.row(r)) label_row_[next[label]++] = static_cast<std::uint32_t>(r);
  }
}

void InstanceIndex::build_centroid_norms(const data::SparseRows& rows, host::Compute& compute) {
  inverse_centroid_norm_.assign(shape_.labels, 0);
  compute.run([&](int worker) {
    CentroidLengths lengths(shape_.features);
    // Neighbouring labels can differ much in work, so they are dealt out in turns.
    for (std::size_t label = static_cast<std::size_t>(worker); label < shape_.labels;
         label += static_cast<std::size_t>(compute.workers())) {
      for (std::uint32_t i = label_row_begin_[label]; i < label_row_begin_[label + 1]; ++i)
        lengths.add(rows.row(label_row_[i]));
      inverse_centroid_norm_[label] = lengths.take_inverse();
    }
  });
}

// The first entry of the feature's list whose row is not before `row`.
std::uint32_t InstanceIndex::entry_from(std::uint32_t feature, std::size_t row) const {
  const auto list =
      std::span(entry_).subspan(column_begin_[feature], column_begin_[feature + 1] - column_begin_[feature]);
  const auto found = std::ranges::lower_bound(list, row, {}, &Entry::row);
  return column_begin_[feature] + static_cast<std::uint32_t>(found - list.begin());
}

// Parts the features of each query into dense columns and lists, from `first_row` on.
void InstanceIndex::plan(std::span<const data::SparseRow> queries, std::size_t first_row,
                         Scratch& scratch) const {
  scratch.column.clear();
  scratch.column_value.clear();
  scratch.column_begin.assign(1, 0);
  scratch.list.clear();
  scratch.list_begin.assign(1, 0);
  for (const data::SparseRow& query : queries) {
    for (std::size_t i = 0; i < query.index.size(); ++i) {
      const std::uint32_t feature = query.index[i];
      if (const std::uint32_t column = dense_column_[feature]; column != kSparse) {
        scratch.column.push_back(column);
        scratch.column_value.push_back(query.value[i]);
        continue;
      }
      const std::uint32_t from = first_row == 0 ? column_begin_[feature] : entry_from(feature, first_row);
      const std::uint32_t end = column_begin_[feature + 1];
      if (from < end) scratch.list.push_back({from, end, query.value[i]});
    }
    scratch.column_begin.push_back(scratch.column.size());
    scratch.list_begin.push_back(scratch.list.size());
  }
}

void InstanceIndex::cosines(std::span<const data::SparseRow> queries, Scratch& scratch,
                            std::span<float> out) const {
  cosines(queries, {0, padded_rows()}, scratch, out);
}

host::Range InstanceIndex::rows_of_worker(int worker, int workers) const {
  const host::Range segments = host::worker_range(segments_, worker, workers);
  return {segments.begin * kSegment, segments.end * kSegment};
}

void InstanceIndex::cosines(std::span<const data::SparseRow> queries, const host::Range& rows,
                            Scratch& scratch, std::span<float> out) const {
  CHECK(queries.size() <= kIndexQueries && out.size() == queries.size() * padded_rows(), queries.size(),
        out.size());
  CHECK(rows.begin % kSegment == 0 && rows.end % kSegment == 0 && rows.end <= padded_rows(), rows.begin,
        rows.end);
  plan(queries, rows.begin, scratch);
  for (std::size_t begin = rows.begin; begin < rows.end; begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, rows.end);
    for (std::size_t row = begin; row < end; row += kSegment) {
      for (std::size_t q = 0; q < queries.size(); ++q) {
        const std::size_t columns = scratch.column_begin[q];
        kernels_.weighted_sum({.out = out.data() + q * padded_rows() + row,
                               .table = dense_.data() + row * dense_columns_,
                               .stride = kSegment,
                               .indices = scratch.column.data() + columns,
                               .values = scratch.column_value.data() + columns,
                               .count = scratch.column_begin[q + 1] - columns,
                               .width = kSegment});
      }
    }
    for (std::size_t q = 0; q < queries.size(); ++q)
      add_lists(scratch, q, end, out.data() + q * padded_rows());
  }
}

// Adds to the sums what query q's lists hold for rows below `end` that have not been visited yet.
void InstanceIndex::add_lists(Scratch& scratch, std::size_t q, std::size_t end, float* sum) const {
  const Entry* const entries = entry_.data();
  const std::size_t lists = scratch.list_begin[q + 1];
  for (std::size_t i = scratch.list_begin[q]; i < lists; ++i) {
    if (i + kAhead < lists) __builtin_prefetch(entries + scratch.list[i + kAhead].at);
    Scratch::List& list = scratch.list[i];
    const float value = list.value;
    const Entry* at = entries + list.at;
    const Entry* const last = entries + list.end;
    for (; at != last && at->row < end; ++at) sum[at->row] += value * at->value;
    list.at = static_cast<std::uint32_t>(at - entries);
  }
}

void InstanceIndex::nearest(std::span<const float> cosines, std::size_t count,
                            std::vector<Scored>& out) const {
  CHECK(count >= 1 && cosines.size() == padded_rows(), count, cosines.size(), padded_rows());
  constexpr std::size_t kStride = 64;
  static_assert(kSegment % kStride == 0);
  out.clear();
  float threshold = 0;  // rows at the threshold come later in the order than kept ones, as ids rise
  for (std::size_t begin = 0; begin < cosines.size(); begin += kStride) {
    const float* block = cosines.data() + begin;
    int above = 0;
    for (std::size_t i = 0; i < kStride; ++i) above += static_cast<int>(block[i] > threshold);
    if (above == 0) continue;
    for (std::size_t i = 0; i < kStride; ++i) {
      if (block[i] > threshold) out.push_back({static_cast<std::uint32_t>(begin + i), block[i]});
    }
    if (out.size() >= 2 * count + kStride) {
      keep_best(out, count);
      threshold = out.back().score;
    }
  }
  if (out.size() > count) keep_best(out, count);
  std::sort(out.begin(), out.end(), ranks_before);
}

std::int64_t InstanceIndex::centroid_sum(std::uint32_t label, std::span<const float> cosines) const {
  const std::uint32_t* row = label_row_.data() + label_row_begin_[label];
  const std::uint32_t* const end = label_row_.data() + label_row_begin_[label + 1];
  std::uint64_t sum = 0;  // may overflow for a senseless model, which is no error
  for (; row != end; ++row) sum += in_units(cosines[*row]);
  return static_cast<std::int64_t>(sum);
}

float InstanceIndex::centroid_cosine(std::uint32_t label, std::span<const float> cosines) const {
  return sparse_engine::centroid_cosine(centroid_sum(label, cosines), inverse_centroid_norm_[label]);
}

}  // namespace gossamer::sparse_engine
