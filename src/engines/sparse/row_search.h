// SPDX-License-Identifier: Apache-2.0
//
// RowSearch: for each query of a block the rows of a matrix with the highest score query . row + bias,
// exactly: every row is scored, 64 at a time by one dense product with the whole block (kernels/products.h),
// and a row enters a query's list only if it beats the list's worst.
//
// On CPUs with native bf16 products rows and queries are rounded to bf16 for the search; the scores of what
// was found are computed anew in f32 and the lists are sorted by those. Elsewhere all is f32.
//
// Borrows the matrix and the kernels for its life. Owner: one thread, which also owns the Compute; rows are
// shared out over its workers. Lists do not depend on the number of workers nor on other queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engines/sparse/ranking.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"

namespace gossamer::engine {

// Queries that one search may take.
inline constexpr std::size_t kQueryBlock = 256;

// The rows: either `weights` or `compact`.
struct RowMatrix {
  std::size_t rows = 0;
  std::size_t width = 0;                   // a multiple of kernels::kLanes
  const float* weights = nullptr;          // rows `stride` apart, zeros from width to stride
  std::size_t stride = 0;                  // a multiple of kernels::kPanelMultiple
  const kernels::Bf16* compact = nullptr;  // [rows][width]
  const float* bias = nullptr;             // [rows], or null for none
};

struct QueryMatrix {
  const float* values =
      nullptr;            // [kQueryBlock][padded_to_panel(width)]; zeros beyond width and beyond count
  std::size_t count = 0;  // 1..kQueryBlock
};

class RowSearch {
 public:
  [[nodiscard]] static std::unique_ptr<RowSearch> create(const RowMatrix& matrix,
                                                         const kernels::Kernels& kernels,
                                                         kernels::Element element, int workers);
  RowSearch(const RowSearch&) = delete;
  RowSearch& operator=(const RowSearch&) = delete;
  virtual ~RowSearch() = default;

  // Finds the best min(k, rows) rows of each query. Requires k >= 1 and a Compute of as many workers as at
  // creation. Rows that score NaN or minus infinity are never found.
  virtual void search(const QueryMatrix& queries, std::size_t k, host::Compute& compute) = 0;
  // What the last search found for query q, best first.
  [[nodiscard]] std::span<const Scored> found(std::size_t q) const { return found_[q]; }

 protected:
  RowSearch() : found_(kQueryBlock) {}

  std::vector<std::vector<Scored>> found_;
};

}  // namespace gossamer::engine
