// SPDX-License-Identifier: Apache-2.0
//
// DenseProduct: C = L R for row-major matrices of floats, where many rows of L use the same R. These are the
// products of a dense layer:
//
// - forward: L = the hidden vectors, R = W^T;
// - backward, for the layer's input: L = the gradients, R = W;
// - backward, for W's own gradient: L = the gradients transposed, R = the inputs.
//
//   const DenseProduct product(isa, {.depth = 256, .columns = 128, .left_stride = 256, .out_stride = 128});
//   product.pack_rows(right, 128, {0, 256}, packed);         // R [depth][columns], once per change
//   product.multiply(left, packed, out, 64);                 // out[64][columns] = left[64][depth] R
//
// The packed R, of packed_size() elements, stands in column blocks that stay in the first-level cache.
// LIBXSMM generates the product where it can; Kernels::multiply takes its place elsewhere. A row's sums are
// formed in an order that does not depend on the number of rows. Thread rule: as PanelProducts (products.h).
//
// Preconditions: columns and depth are multiples of kPanelMultiple and > 0; out_stride >= columns;
// left_stride >= depth; the rows of a product are a multiple of kLanes.
#pragma once

#include <cstddef>

#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/products.h"

namespace gossamer::kernels {

struct DenseShape {
  std::size_t depth;
  std::size_t columns;
  std::size_t left_stride;  // elements between rows of L
  std::size_t out_stride;   // and of C
};

class DenseProduct {
 public:
  // Requires supported(isa).
  DenseProduct(Isa isa, const DenseShape& shape);

  [[nodiscard]] const DenseShape& shape() const { return shape_; }
  // Whether LIBXSMM's kernels serve (for reports).
  [[nodiscard]] bool generated() const { return first_ != nullptr; }
  // Elements of the packed right operand.
  [[nodiscard]] std::size_t packed_size() const { return shape_.depth * shape_.columns; }

  // Rows [begin, end) of R [depth][stride]; `right` is its row 0. Disjoint ranges may be packed by several
  // threads.
  void pack_rows(const float* right, std::size_t stride, SampleRange rows, float* packed) const;
  // Columns [begin, end) of R, given as rows of R^T [columns][stride]; both multiples of kLanes.
  void pack_columns(const float* transposed, std::size_t stride, SampleRange columns, float* packed) const;

  // out[rows][out_stride] = left[rows][left_stride] R. Columns of `out` past shape().columns stay as they
  // are.
  void multiply(const float* left, const float* packed, float* out, std::size_t rows) const;

 private:
  const Kernels* kernels_;
  DenseShape shape_;
  std::size_t block_columns_;  // divides columns
  std::size_t block_depth_;    // divides depth
  // Generated products (products.cc knows their type) for the first block of depth and the later ones, or
  // null.
  void (*first_)();
  void (*next_)();
};

}  // namespace gossamer::kernels
