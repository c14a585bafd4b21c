// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/instance_scorer.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::engine {

InstanceScorer::InstanceScorer(InstancePart part, IndexShape shape, std::size_t width,
                               const kernels::Kernels& kernels, host::Compute& compute)
    : part_(std::move(part)),
      width_(width),
      kernels_(kernels),
      compute_(compute),
      index_(part_.rows, shape, part_.dense, kernels),
      units_(kQueryBlock * sparse::row_stride(width)),
      workers_(static_cast<std::size_t>(compute.workers())),
      by_input_(kQueryBlock),
      by_hidden_(kQueryBlock) {
  // The index has them now; assigned, they would keep their memory.
  std::vector<std::uint32_t>().swap(part_.rows.feature);
  std::vector<float>().swap(part_.rows.value);
  std::vector<std::uint8_t>().swap(part_.dense);
  for (Worker& worker : workers_) worker.cosines = AlignedArray<float>(kIndexQueries * index_.padded_rows());
  if (part_.number.empty()) return;
  search_.emplace(RowMatrix{.rows = part_.number.size(), .width = width, .compact = part_.rows.hidden.data()},
                  kernels, compute);
}

void InstanceScorer::compute_cosines(const data::SparseRows& queries, const host::Range& range,
                                     Worker& worker) const {
  worker.block.clear();
  for (std::size_t q = range.begin; q < range.end; ++q) worker.block.push_back(queries.row(q));
  index_.cosines(worker.block, worker.scratch,
                 worker.cosines.span().first(worker.block.size() * index_.padded_rows()));
}

std::span<const float> InstanceScorer::cosines(const Worker& worker, std::size_t i) const {
  return worker.cosines.span().subspan(i * index_.padded_rows(), index_.padded_rows());
}

void InstanceScorer::list(std::size_t q, std::span<const float> cosines, const float* unit,
                          std::size_t neighbours, Worker& worker) {
  index_.nearest(cosines, neighbours, worker.nearest);
  for (const Scored& one : worker.nearest) {
    const kernels::Bf16* const row = part_.rows.hidden.data() + std::size_t{one.id} * width_;
    by_input_[q].push_back({part_.number[one.id], one.score, kernels_.dot_bf16(row, unit, width_)});
  }
  for (const Scored& one : search_->found(q))
    by_hidden_[q].push_back({part_.number[one.id], cosines[one.id], one.score});
}

void InstanceScorer::search(const data::SparseRows& queries, const QueryMatrix& hidden,
                            std::size_t neighbours) {
  const std::size_t stride = sparse::row_stride(width_);
  CHECK(queries.rows() == hidden.count && hidden.count <= kQueryBlock && hidden.stride == stride,
        queries.rows(), hidden.count, hidden.stride);
  for (std::size_t q = 0; q < hidden.count; ++q) {
    by_input_[q].clear();
    by_hidden_[q].clear();
    to_unit_length({hidden.values + q * stride, stride}, units_.data() + q * stride);
  }
  if (!search_) return;
  search_->search({units_.data(), stride, hidden.count}, neighbours);
  compute_.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    const host::Range mine = host::worker_range(hidden.count, w, compute_.workers());
    for (std::size_t first = mine.begin; first < mine.end; first += kIndexQueries) {
      const std::size_t last = std::min(first + kIndexQueries, mine.end);
      compute_cosines(queries, {first, last}, worker);
      for (std::size_t q = first; q < last; ++q)
        list(q, cosines(worker, q - first), units_.data() + q * stride, neighbours, worker);
    }
  });
}

void InstanceScorer::sum(const data::SparseRows& queries, const data::LabelSets& labels,
                         std::span<std::int64_t> sums) {
  CHECK(queries.rows() == labels.rows() && sums.size() == labels.label.size(), queries.rows(), labels.rows(),
        sums.size());
  compute_.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    const host::Range mine = host::worker_range(queries.rows(), w, compute_.workers());
    for (std::size_t first = mine.begin; first < mine.end; first += kIndexQueries) {
      const std::size_t last = std::min(first + kIndexQueries, mine.end);
      compute_cosines(queries, {first, last}, worker);
      for (std::size_t q = first; q < last; ++q) {
        for (std::size_t i = labels.begin[q]; i < labels.begin[q + 1]; ++i)
          sums[i] = index_.centroid_sum(labels.label[i], cosines(worker, q - first));
      }
    }
  });
}

std::optional<std::span<const std::uint32_t>> InstanceScorer::labels_of(std::uint32_t number) const {
  const auto found = std::ranges::lower_bound(part_.number, number);
  if (found == part_.number.end() || *found != number) return std::nullopt;
  return part_.rows.labels().row(static_cast<std::size_t>(found - part_.number.begin()));
}

}  // namespace gossamer::engine
