// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/instance_scorer.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

InstanceScorer::InstanceScorer(InstancePart part, IndexShape shape, std::size_t width,
                               const kernels::Kernels& kernels, host::Compute& compute)
    : part_(std::move(part)),
      width_(width),
      kernels_(kernels),
      compute_(compute),
      index_(part_.rows, shape, part_.dense, kernels),
      units_(kQueryBlock * sparse::row_stride(width)),
      cosines_(kIndexQueries * index_.padded_rows()),
      workers_(static_cast<std::size_t>(compute.workers())),
      by_input_(kQueryBlock),
      by_hidden_(kQueryBlock) {
  // The index has copies of them. swap() releases their memory; an assignment would keep it.
  std::vector<std::uint32_t>().swap(part_.rows.feature);
  std::vector<float>().swap(part_.rows.value);
  std::vector<std::uint8_t>().swap(part_.dense);
  if (part_.number.empty()) return;
  search_.emplace(RowMatrix{.rows = part_.number.size(), .width = width, .compact = part_.rows.hidden.data()},
                  kernels, compute);
}

// Each worker computes some rows for all queries that go together, and then uses the cosines of some of these
// queries. If each worker had queries of its own, their cosines would take that memory once for each worker.
void InstanceScorer::for_each(const data::SparseRows& queries, const UseCosines& use) {
  const std::size_t padded = index_.padded_rows();
  std::vector<data::SparseRow> together;
  for (std::size_t first = 0; first < queries.rows(); first += kIndexQueries) {
    const std::size_t count = std::min(kIndexQueries, queries.rows() - first);
    together.clear();
    for (std::size_t i = 0; i < count; ++i) together.push_back(queries.row(first + i));
    compute_.run([&](int w) {
      index_.cosines(together, index_.rows_of_worker(w, compute_.workers()),
                     workers_[static_cast<std::size_t>(w)].scratch, cosines_.span().first(count * padded));
    });
    compute_.run([&](int w) {
      const host::Range mine = host::worker_range(count, w, compute_.workers());
      for (std::size_t i = mine.begin; i < mine.end; ++i) {
        use(first + i, std::as_const(cosines_).span().subspan(i * padded, padded),
            workers_[static_cast<std::size_t>(w)]);
      }
    });
  }
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
  for_each(queries, [&](std::size_t q, std::span<const float> cosines, Worker& worker) {
    list(q, cosines, units_.data() + q * stride, neighbours, worker);
  });
}

void InstanceScorer::sum(const data::SparseRows& queries, const data::LabelSets& labels,
                         std::span<std::int64_t> sums) {
  CHECK(queries.rows() == labels.rows() && sums.size() == labels.label.size(), queries.rows(), labels.rows(),
        sums.size());
  for_each(queries, [&](std::size_t q, std::span<const float> cosines, Worker&) {
    for (std::size_t i = labels.begin[q]; i < labels.begin[q + 1]; ++i)
      sums[i] = index_.centroid_sum(labels.label[i], cosines);
  });
}

std::optional<std::span<const std::uint32_t>> InstanceScorer::labels_of(std::uint32_t number) const {
  const auto found = std::ranges::lower_bound(part_.number, number);
  if (found == part_.number.end() || *found != number) return std::nullopt;
  return part_.rows.labels().row(static_cast<std::size_t>(found - part_.number.begin()));
}

}  // namespace gossamer::sparse_engine
