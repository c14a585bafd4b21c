// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_products.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/generated.h"

namespace gossamer::kernels {
namespace {

// Blocks of R as in products.cc: 64 columns wide and 32 KiB in all.
constexpr std::size_t kBlockColumns = 64;
constexpr std::size_t kBlockDepth = (std::size_t{32} << 10) / kBlockColumns / sizeof(float);
// Rows of a product come in blocks, so that one generated product serves any number of them.
constexpr std::size_t kBlockRows = kLanes;

// The largest of max, max/2, ... 32 that divides n.
std::size_t block_of(std::size_t n, std::size_t max) {
  while (n % max != 0) max /= 2;
  return max;
}

}  // namespace

DenseProduct::DenseProduct(Isa isa, const DenseShape& shape)
    : kernels_(&kernels_for(isa)),
      shape_(shape),
      block_columns_(block_of(shape.columns, kBlockColumns)),
      block_depth_(block_of(shape.depth, kBlockDepth)) {
  CHECK(shape.depth > 0 && shape.depth % kPanelMultiple == 0, shape.depth);
  CHECK(shape.columns > 0 && shape.columns % kPanelMultiple == 0, shape.columns);
  CHECK(shape.left_stride >= shape.depth && shape.out_stride >= shape.columns, shape.left_stride,
        shape.out_stride);
  const GeneratedShape product{.m = block_columns_,
                               .n = kBlockRows,
                               .k = block_depth_,
                               .lda = block_columns_,
                               .ldb = shape.left_stride,
                               .ldc = shape.out_stride};
  first_ = generate(isa, Element::kF32, product, Destination::kOverwrite);
  next_ = generate(isa, Element::kF32, product, Destination::kAdd);
}

// [columns / block][depth][block].
void DenseProduct::pack_rows(const float* right, std::size_t stride, SampleRange rows, float* packed) const {
  for (std::size_t r = rows.begin; r < rows.end; ++r) {
    for (std::size_t c = 0; c < shape_.columns; c += block_columns_) {
      std::copy_n(right + r * stride + c, block_columns_, packed + c * shape_.depth + r * block_columns_);
    }
  }
}

void DenseProduct::pack_columns(const float* transposed, std::size_t stride, SampleRange columns,
                                float* packed) const {
  for (std::size_t c = columns.begin; c < columns.end; c += kLanes) {
    kernels_->transpose(
        {.in = transposed + c * stride,
         .out = packed + c / block_columns_ * block_columns_ * shape_.depth + c % block_columns_,
         .rows = kLanes,
         .columns = shape_.depth,
         .in_stride = stride,
         .out_stride = block_columns_});
  }
}

void DenseProduct::multiply(const float* left, const float* packed, float* out, std::size_t rows) const {
  CHECK(rows % kBlockRows == 0, rows);
  if (!generated()) {
    for (std::size_t r = 0; r < rows; ++r) std::fill_n(out + r * shape_.out_stride, shape_.columns, 0.0F);
  }
  for (std::size_t c = 0; c < shape_.columns; c += block_columns_) {
    for (std::size_t d = 0; d < shape_.depth; d += block_depth_) {
      const float* const a = packed + c * shape_.depth + d * block_columns_;
      for (std::size_t r = 0; r < rows; r += kBlockRows) {
        const float* const b = left + r * shape_.left_stride + d;
        float* const to = out + r * shape_.out_stride + c;
        if (generated()) {
          call_generated(d == 0 ? first_ : next_, a, b, to);
          continue;
        }
        kernels_->multiply({.a = a,
                            .b = b,
                            .c = to,
                            .m = block_columns_,
                            .n = kBlockRows,
                            .k = block_depth_,
                            .lda = block_columns_,
                            .ldb = shape_.left_stride,
                            .ldc = shape_.out_stride});
      }
    }
  }
}

}  // namespace gossamer::kernels
