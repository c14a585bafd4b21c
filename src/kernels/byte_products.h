// SPDX-License-Identifier: Apache-2.0
//
// ByteProducts: the products of a panel of kPanelRows rows of signed bytes with a batch of queries of
// unsigned bytes. They are exact in 32 bits and therefore the same on every instruction set. A byte costs a
// quarter of a float's memory traffic. Where the CPU has VNNI instructions, a product takes half the time of
// one in bf16.
//
//   const ByteProducts products(isa, {.hidden = 128, .batch = 64});
//   ByteProducts::Queries packed = products.queries();
//   products.pack(queries, packed);              // once per block of queries
//   products.scores(rows, packed, scratch, s);   // s[r][b] = rows[r] . queries[b]
//
// LIBXSMM generates the products where the CPU has VNNI. Elsewhere Kernels::multiply_int16 takes its place,
// on operands widened to 16 bits. Preconditions: hidden is a multiple of kLanes, at most 65536; batch is a
// multiple of kPanelMultiple; both > 0. Thread rule: as PanelProducts (products.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_array.h"
#include "kernels/kernels.h"
#include "kernels/products.h"

namespace gossamer::kernels {

class ByteProducts {
 public:
  // Requires supported(isa).
  ByteProducts(Isa isa, PanelShape shape);

  [[nodiscard]] PanelShape shape() const { return shape_; }
  // Whether LIBXSMM's kernel serves (for reports).
  [[nodiscard]] bool generated() const { return product_ != nullptr; }

  // A batch in the layout of the products: one of the two is empty.
  struct Queries {
    AlignedArray<std::uint8_t> bytes;    // [batch / block][hidden / 4][block][4]
    AlignedArray<std::int16_t> widened;  // [batch / block][hidden / 2][block][2]
  };
  [[nodiscard]] Queries queries() const;
  // queries [batch][hidden].
  void pack(const std::uint8_t* queries, Queries& packed) const;

  // s[64][batch]; rows [64][hidden]; `scratch`, of scratch_size() elements, is the calling thread's own.
  void scores(const std::int8_t* rows, const Queries& packed, std::int16_t* scratch, std::int32_t* s) const;
  [[nodiscard]] std::size_t scratch_size() const { return generated() ? 0 : kPanelRows * shape_.hidden; }

 private:
  const Kernels* kernels_;
  PanelShape shape_;
  std::size_t block_;  // queries of a query block, which stays in the first-level cache; divides the batch
  void (*product_)();  // generated (generated.h), or null
};

}  // namespace gossamer::kernels
