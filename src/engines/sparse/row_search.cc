// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/row_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "base/aligned_array.h"
#include "base/check.h"
#include "kernels/products.h"

namespace gossamer::engine {
namespace {

using kernels::Bf16;
using kernels::kPanelRows;

// Two sizes of the product serve all blocks: queries are few (one person asks) or many (a test set).
constexpr std::array<std::size_t, 2> kBatches = {kernels::kPanelMultiple, kQueryBlock};
// A list is cut back to k when it has grown by this much beyond k, at the latest.
constexpr std::size_t kSlack = 64;

template <class E>
class PanelSearch final : public RowSearch {
 public:
  PanelSearch(const RowMatrix& matrix, const kernels::Kernels& kernels, int workers)
      : matrix_(matrix),
        kernels_(kernels),
        stride_(kernels::padded_to_panel(matrix.width)),
        products_{kernels::PanelProducts<E>(kernels.isa, {.hidden = stride_, .batch = kBatches[0]}),
                  kernels::PanelProducts<E>(kernels.isa, {.hidden = stride_, .batch = kBatches[1]})},
        packed_(std::max(products_[0].packed_size(), products_[1].packed_size())) {
    CHECK((matrix.weights != nullptr) != (matrix.compact != nullptr) || matrix.rows == 0, matrix.rows);
    CHECK(matrix.width % kernels::kLanes == 0 && (matrix.weights == nullptr || matrix.stride >= stride_),
          matrix.width, matrix.stride, stride_);
    for (int w = 0; w < workers; ++w) {
      workers_.push_back({.panel = AlignedArray<E>(products_[1].panel_size()),
                          .row = AlignedArray<float>(stride_),
                          .scores = AlignedArray<float>(kPanelRows * kQueryBlock),
                          .thresholds = AlignedArray<float>(kQueryBlock),
                          .hits = std::vector<kernels::ScoreHit>(kQueryBlock),
                          .lists = std::vector<std::vector<Scored>>(kQueryBlock)});
    }
  }

  void search(const QueryMatrix& queries, std::size_t k, host::Compute& compute) override {
    CHECK(queries.count >= 1 && queries.count <= kQueryBlock && k >= 1, queries.count, k);
    CHECK(static_cast<std::size_t>(compute.workers()) == workers_.size(), compute.workers(), workers_.size());
    const kernels::PanelProducts<E>& products = products_[queries.count <= kBatches[0] ? 0 : 1];
    products.pack_hidden(queries.values, packed_.data());
    const std::size_t panels = (matrix_.rows + kPanelRows - 1) / kPanelRows;
    compute.run([&](int w) {
      Worker& worker = workers_[static_cast<std::size_t>(w)];
      for (auto& list : worker.lists) list.clear();
      std::fill_n(worker.thresholds.data(), queries.count, -std::numeric_limits<float>::infinity());
      // Padding columns score 0 + bias for every row: nothing is above infinity.
      std::fill(worker.thresholds.data() + queries.count, worker.thresholds.data() + kQueryBlock,
                std::numeric_limits<float>::infinity());
      const host::Range range = host::worker_range(panels, w, compute.workers());
      for (std::size_t panel = range.begin; panel < range.end; ++panel) {
        score_panel(products, panel * kPanelRows, k, worker);
      }
    });
    compute.run([&](int w) {
      const host::Range range = host::worker_range(queries.count, w, compute.workers());
      for (std::size_t q = range.begin; q < range.end; ++q) merge(queries, q, k);
    });
  }

 private:
  struct Worker {
    AlignedArray<E> panel;
    AlignedArray<float> row;  // a row on its way from bf16 to the panel
    AlignedArray<float> scores;
    AlignedArray<float> thresholds;
    std::vector<kernels::ScoreHit> hits;
    std::vector<std::vector<Scored>> lists;  // per query, at most 2 k + kSlack, the best k among them
  };

  // The panel of rows from `first` on; rows past the last are left as they are and not looked at.
  const E* panel_of(const kernels::PanelProducts<E>& products, std::size_t first, std::size_t rows,
                    Worker& worker) const {
    if constexpr (std::is_same_v<E, float>) {
      if (matrix_.weights != nullptr && matrix_.stride == products.panel_stride() && rows == kPanelRows) {
        return matrix_.weights + first * matrix_.stride;
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row = matrix_.weights + (first + r) * matrix_.stride;
      if (matrix_.compact != nullptr) {
        kernels_.from_bf16(matrix_.compact + (first + r) * matrix_.width, worker.row.data(), matrix_.width);
        row = worker.row.data();
      }
      products.pack_row(row, worker.panel.data() + r * products.panel_stride());
    }
    return worker.panel.data();
  }

  void score_panel(const kernels::PanelProducts<E>& products, std::size_t first, std::size_t k,
                   Worker& worker) {
    const std::size_t rows = std::min(kPanelRows, matrix_.rows - first);
    const std::size_t batch = products.shape().batch;
    products.scores(panel_of(products, first, rows, worker), packed_.data(), worker.scores.data());
    for (std::size_t r = 0; r < rows; ++r) {
      const auto id = static_cast<std::uint32_t>(first + r);
      const std::size_t hits =
          kernels_.select_above({.scores = worker.scores.data() + r * batch,
                                 .bias = matrix_.bias != nullptr ? matrix_.bias[id] : 0.0F,
                                 .thresholds = worker.thresholds.data(),
                                 .hits = worker.hits.data(),
                                 .n = batch});
      for (std::size_t i = 0; i < hits; ++i) {
        const kernels::ScoreHit& hit = worker.hits[i];
        std::vector<Scored>& list = worker.lists[hit.column];
        list.push_back({id, hit.score});
        if (list.size() < 2 * k + kSlack) continue;
        // Ids rise, so a later row of the worst kept score would rank behind it: strictly above is right.
        keep_best(list, k);
        worker.thresholds[hit.column] = list.back().score;
      }
    }
  }

  void merge(const QueryMatrix& queries, std::size_t q, std::size_t k) {
    std::vector<Scored>& found = found_[q];
    found.clear();
    for (const Worker& worker : workers_) {
      found.insert(found.end(), worker.lists[q].begin(), worker.lists[q].end());
    }
    if (found.size() > k) keep_best(found, k);
    if constexpr (std::is_same_v<E, Bf16>) {
      for (Scored& entry : found) entry.score = exact_score(queries.values + q * stride_, entry.id);
    }
    std::sort(found.begin(), found.end(), ranks_before);
  }

  [[nodiscard]] float exact_score(const float* query, std::uint32_t row) const {
    const float product =
        matrix_.compact != nullptr
            ? kernels_.dot_bf16(matrix_.compact + std::size_t{row} * matrix_.width, query, matrix_.width)
            : kernels_.dot(matrix_.weights + std::size_t{row} * matrix_.stride, query, matrix_.width);
    return product + (matrix_.bias != nullptr ? matrix_.bias[row] : 0.0F);
  }

  RowMatrix matrix_;
  const kernels::Kernels& kernels_;
  std::size_t stride_;
  std::array<kernels::PanelProducts<E>, 2> products_;
  AlignedArray<E> packed_;
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<RowSearch> RowSearch::create(const RowMatrix& matrix, const kernels::Kernels& kernels,
                                             kernels::Element element, int workers) {
  if (element == kernels::Element::kBf16)
    return std::make_unique<PanelSearch<Bf16>>(matrix, kernels, workers);
  return std::make_unique<PanelSearch<float>>(matrix, kernels, workers);
}

}  // namespace gossamer::engine
