// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/predict/hashed_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engines/sparse/config/negatives_plan.h"
#include "learn/sparse/negatives/hash_negatives.h"

namespace gossamer::sparse_engine {

Result<std::unique_ptr<HashedSearch>> HashedSearch::create(const sparse::Network& network,
                                                           const kernels::Kernels& kernels,
                                                           host::Compute& compute) {
  const std::size_t rows = network.shape.labels;
  const auto planned = plan_tables({}, rows, network.shape.last_hidden());
  if (!planned.ok()) return planned.error();
  const TablePlan& plan = planned->plan;
  std::unique_ptr<HashedSearch> search(new HashedSearch(network, kernels, compute));
  search->family_ = sparse::make_hash_family({.functions = plan.functions, .tables = plan.tables},
                                             network.shape.last_hidden(), kernels.isa);
  search->tables_ =
      std::make_unique<lsh::Tables>(*search->family_, rows, lsh::TablesOptions{.key_bits = plan.key_bits});
  search->tables_->build({.data = network.output.weights(0), .rows = rows, .stride = network.output.stride()},
                         compute);
  for (int w = 0; w < compute.workers(); ++w) {
    search->workers_.emplace_back(*search->tables_, std::min(rows, kRescored));
  }
  return search;
}

void HashedSearch::rescore(const float* query, std::span<const lsh::Candidate> candidates, std::size_t k,
                           std::vector<Scored>& out) const {
  constexpr std::size_t kAhead = 4;
  out.clear();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i + kAhead < candidates.size()) sparse::prefetch_weights(network_.output, candidates[i + kAhead].row);
    const std::uint32_t row = candidates[i].row;
    const float score =
        kernels_.dot(network_.output.weights(row), query, network_.output.stride()) + network_.bias[row];
    if (!std::isnan(score)) out.push_back({.id = row, .score = score});
  }
  if (out.size() > k) keep_best(out, k);
  std::ranges::sort(out, ranks_before);
}

void HashedSearch::search(const QueryMatrix& queries, std::size_t k) {
  CHECK(k >= 1 && queries.count >= 1 && queries.count <= kQueryBlock, k, queries.count);
  compute_.run([&](int w) {
    Worker& worker = workers_[static_cast<std::size_t>(w)];
    const host::Range range = host::worker_range(queries.count, w, compute_.workers());
    for (std::size_t q = range.begin; q < range.end; ++q) {
      const float* const query = queries.values + q * queries.stride;
      rescore(query, worker.query.find(std::span(query, network_.shape.last_hidden())), k, found_[q]);
    }
  });
}

}  // namespace gossamer::sparse_engine
