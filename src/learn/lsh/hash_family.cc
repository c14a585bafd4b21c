// SPDX-License-Identifier: Apache-2.0
#include "learn/lsh/hash_family.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::lsh {
namespace {

using kernels::kCodeRows;
using kernels::kLanes;

constexpr std::size_t padded(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

}  // namespace

HashWorkspace::HashWorkspace(const HashShape& shape)
    : stride(padded(shape.dimension)),
      rows(kCodeRows * stride),
      columns(kCodeRows * stride),
      function_value(padded(shape.functions * shape.tables)),
      function_winner(shape.functions * shape.tables),
      codes(shape.tables),
      index(shape.dimension),
      value(shape.dimension) {}

HashFamily::HashFamily(const HashShape& shape, std::size_t code_bits)
    : shape_(shape), code_bits_(static_cast<unsigned>(code_bits)) {
  CHECK(shape.dimension >= 1 && shape.functions >= 1 && shape.tables >= 1, shape.dimension, shape.functions,
        shape.tables);
  CHECK(code_bits >= 1 && code_bits <= 32, code_bits);
}

void HashFamily::hash_dense(std::span<const float> vector, HashWorkspace& workspace,
                            std::span<std::uint32_t> codes) const {
  CHECK(vector.size() == shape_.dimension, vector.size(), shape_.dimension);
  hash(nonzeros(vector, workspace), workspace, codes);
}

data::SparseRow nonzeros(std::span<const float> vector, HashWorkspace& workspace) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    workspace.index[count] = static_cast<std::uint32_t>(i);
    workspace.value[count] = vector[i];
    count += vector[i] != 0.0F ? 1 : 0;
  }
  return {workspace.index.span().first(count), workspace.value.span().first(count)};
}

void transpose_block(const kernels::Kernels& kernels, const HashShape& shape,
                     std::span<const float* const> rows, HashWorkspace& workspace) {
  CHECK(rows.size() <= kCodeRows, rows.size());
  const std::size_t stride = workspace.stride;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy_n(rows[r], shape.dimension, workspace.rows.data() + r * stride);
  }
  std::fill(workspace.rows.data() + rows.size() * stride, workspace.rows.data() + kCodeRows * stride, 0.0F);
  kernels.transpose({.in = workspace.rows.data(),
                     .out = workspace.columns.data(),
                     .rows = kCodeRows,
                     .columns = stride,
                     .in_stride = stride,
                     .out_stride = kCodeRows});
}

}  // namespace gossamer::lsh
