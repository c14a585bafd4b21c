// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_products.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/generated.h"

namespace gossamer::kernels {
namespace {

// LIBXSMM 1.17 generates wrong code for blocks of one vector (m = 16), so two is the least.
std::size_t block_of(PanelShape shape) {
  constexpr std::size_t kFirstLevelCache = std::size_t{32} * 1024;
  const std::size_t twice = 2 * kPanelMultiple;
  return shape.batch % twice == 0 && twice * shape.hidden <= kFirstLevelCache ? twice : kPanelMultiple;
}

// [batch][hidden] to [batch / block][hidden / kGroup][block][kGroup].
template <std::size_t kGroup, class T>
void pack_groups(const std::uint8_t* queries, PanelShape shape, std::size_t block, T* out) {
  for (std::size_t b = 0; b < shape.batch; ++b) {
    const std::uint8_t* const query = queries + b * shape.hidden;
    T* const column = out + b / block * block * shape.hidden + b % block * kGroup;
    for (std::size_t i = 0; i < shape.hidden; i += kGroup) {
      for (std::size_t j = 0; j < kGroup; ++j) column[i * block + j] = query[i + j];
    }
  }
}

}  // namespace

ByteProducts::ByteProducts(Isa isa, PanelShape shape)
    : kernels_(&kernels_for(isa)), shape_(shape), block_(block_of(shape)) {
  CHECK(shape.hidden > 0 && shape.hidden % kLanes == 0 && shape.hidden <= 65536, shape.hidden);
  CHECK(shape.batch > 0 && shape.batch % kPanelMultiple == 0, shape.batch);
  product_ = generate_bytes(isa, {.m = block_,
                                  .n = kPanelRows,
                                  .k = shape.hidden,
                                  .lda = block_,
                                  .ldb = shape.hidden,
                                  .ldc = shape.batch});
}

ByteProducts::Queries ByteProducts::queries() const {
  const std::size_t size = shape_.hidden * shape_.batch;
  return {.bytes = AlignedArray<std::uint8_t>(generated() ? size : 0),
          .widened = AlignedArray<std::int16_t>(generated() ? 0 : size)};
}

void ByteProducts::pack(const std::uint8_t* queries, Queries& packed) const {
  if (generated()) {
    pack_groups<4>(queries, shape_, block_, packed.bytes.data());
  } else {
    pack_groups<2>(queries, shape_, block_, packed.widened.data());
  }
}

void ByteProducts::scores(const std::int8_t* rows, const Queries& packed, std::int16_t* scratch,
                          std::int32_t* s) const {
  const auto [hidden, batch] = shape_;
  if (generated()) {
    for (std::size_t b = 0; b < batch; b += block_) {
      call_generated(product_, packed.bytes.data() + b * hidden, rows, s + b);
    }
    return;
  }
  std::copy_n(rows, kPanelRows * hidden, scratch);
  std::fill_n(s, kPanelRows * batch, 0);
  for (std::size_t b = 0; b < batch; b += block_) {
    kernels_->multiply_int16({.a = packed.widened.data() + b * hidden,
                              .b = scratch,
                              .c = s + b,
                              .m = block_,
                              .n = kPanelRows,
                              .k = hidden,
                              .lda = block_,
                              .ldb = hidden,
                              .ldc = batch});
  }
}

}  // namespace gossamer::kernels
