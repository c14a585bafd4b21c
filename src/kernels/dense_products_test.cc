// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_products.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/aligned_array.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kLeft{.seed = 1};
constexpr RandomInputs kRight{.seed = 2};
constexpr RandomInputs kOut{.seed = 3};

// Both ways of packing give L R, rows and columns beyond the product keep their values.
void expect_product(Isa isa, const DenseShape& shape, std::size_t rows) {
  SCOPED_TRACE(testing::Message() << name(isa) << " depth " << shape.depth << " columns " << shape.columns
                                  << " rows " << rows);
  const DenseProduct product(isa, shape);
  const std::size_t right_stride = shape.columns + 3;
  const AlignedArray<float> left = kLeft.matrix(rows * shape.left_stride);
  const AlignedArray<float> right = kRight.matrix(shape.depth * right_stride);
  AlignedArray<float> transposed(shape.columns * shape.depth);
  for (std::size_t d = 0; d < shape.depth; ++d) {
    for (std::size_t c = 0; c < shape.columns; ++c) {
      transposed[c * shape.depth + d] = right[d * right_stride + c];
    }
  }
  AlignedArray<float> packed(product.packed_size());
  for (const bool by_rows : {true, false}) {
    for (float& x : packed.span()) x = NAN;
    if (by_rows) {
      product.pack_rows(right.data(), right_stride, {0, 7}, packed.data());
      product.pack_rows(right.data(), right_stride, {7, shape.depth}, packed.data());
    } else {
      product.pack_columns(transposed.data(), shape.depth, {kLanes, shape.columns}, packed.data());
      product.pack_columns(transposed.data(), shape.depth, {0, kLanes}, packed.data());
    }
    AlignedArray<float> out = kOut.matrix((rows + 1) * shape.out_stride);
    const AlignedArray<float> before = kOut.matrix((rows + 1) * shape.out_stride);
    product.multiply(left.data(), packed.data(), out.data(), rows);
    for (std::size_t r = 0; r <= rows; ++r) {
      for (std::size_t c = 0; c < shape.out_stride; ++c) {
        double want = static_cast<double>(before[r * shape.out_stride + c]);
        if (r < rows && c < shape.columns) {
          want = 0;
          for (std::size_t d = 0; d < shape.depth; ++d) {
            want += static_cast<double>(left[r * shape.left_stride + d]) *
                    static_cast<double>(right[d * right_stride + c]);
          }
        }
        const double tolerance = 1e-6 * static_cast<double>(shape.depth);
        ASSERT_NEAR(out[r * shape.out_stride + c], want, tolerance) << "row " << r << " column " << c;
      }
    }
  }
}

// On every instruction set, for widths with one and several blocks of columns and of depth.
TEST(DenseProduct, IsTheProduct) {
  for (const Isa isa : kAllIsas) {
    if (!supported(isa)) continue;
    for (const std::size_t depth : {32U, 96U, 256U}) {
      for (const std::size_t columns : {32U, 64U, 96U, 256U}) {
        const DenseShape tight{
            .depth = depth, .columns = columns, .left_stride = depth, .out_stride = columns};
        const DenseShape gaps{
            .depth = depth, .columns = columns, .left_stride = depth + 5, .out_stride = columns + 7};
        expect_product(isa, tight, 16);
        expect_product(isa, gaps, 48);
      }
    }
  }
}

// A row's result is the same, to the bit, beside any other rows.
TEST(DenseProduct, RowsDoNotDependOnEachOther) {
  constexpr DenseShape kShape{.depth = 288, .columns = 96, .left_stride = 288, .out_stride = 96};
  for (const Isa isa : kAllIsas) {
    if (!supported(isa)) continue;
    const DenseProduct product(isa, kShape);
    const AlignedArray<float> left = kLeft.matrix(64 * kShape.depth);
    const AlignedArray<float> right = kRight.matrix(kShape.depth * kShape.columns);
    AlignedArray<float> packed(product.packed_size());
    product.pack_rows(right.data(), kShape.columns, {0, kShape.depth}, packed.data());
    AlignedArray<float> together(64 * kShape.columns);
    AlignedArray<float> apart(64 * kShape.columns);
    product.multiply(left.data(), packed.data(), together.data(), 64);
    for (std::size_t r = 0; r < 64; r += 16) {
      product.multiply(left.data() + r * kShape.depth, packed.data(), apart.data() + r * kShape.columns, 16);
    }
    for (std::size_t i = 0; i < together.size(); ++i)
      ASSERT_EQ(together[i], apart[i]) << name(isa) << " " << i;
  }
}

}  // namespace
}  // namespace gossamer::kernels
