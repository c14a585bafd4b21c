// SPDX-License-Identifier: Apache-2.0
#include "kernels/products.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/check.h"
#include "kernels/generated.h"

namespace gossamer::kernels {
namespace {

// Rows and columns of the tile in which an operand is rounded and rearranged, still in the first-level cache.
constexpr std::size_t kTileRows = kLanes;
constexpr std::size_t kTileColumns = kPanelMultiple;

template <class E>
constexpr Element kElement = std::is_same_v<E, float> ? Element::kF32 : Element::kBf16;

void multiply(const Kernels& k, const Multiply<float>& product) { k.multiply(product); }
void multiply(const Kernels& k, const Multiply<Bf16>& product) { k.multiply_bf16(product); }

void transpose(const Kernels& k, const Transpose<float>& matrix) { k.transpose(matrix); }
void transpose(const Kernels& k, const Transpose<Bf16>& matrix) { k.transpose_bf16(matrix); }

// out[i] = scale * x[i], rounded to E.
void scaled(const Kernels&, const float* x, float scale, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = scale * x[i];
}
void scaled(const Kernels& k, const float* x, float scale, std::size_t n, Bf16* out) {
  std::array<float, kTileColumns> block;
  for (std::size_t i = 0; i < n; i += block.size()) {
    for (std::size_t j = 0; j < block.size(); ++j) block[j] = scale * x[i + j];
    k.to_bf16(block.data(), out + i, block.size());
  }
}

}  // namespace

template <class E>
PanelProducts<E>::PanelProducts(Isa isa, PanelShape shape) : kernels_(&kernels_for(isa)), shape_(shape) {
  const auto [hidden, batch] = shape;
  CHECK(hidden > 0 && hidden % kPanelMultiple == 0, hidden);
  CHECK(batch > 0 && batch % kPanelMultiple == 0, batch);
  scores_ =
      generate(isa, kElement<E>,
               {.m = batch, .n = kPanelRows, .k = hidden, .lda = batch, .ldb = panel_stride(), .ldc = batch},
               Destination::kOverwrite);
  hidden_gradient_ = generate(
      isa, kElement<E>,
      {.m = hidden, .n = batch, .k = kPanelRows, .lda = panel_stride(), .ldb = kPanelRows, .ldc = hidden},
      Destination::kAdd);
  weight_gradient_ =
      generate(isa, kElement<E>,
               {.m = hidden, .n = kPanelRows, .k = batch, .lda = hidden, .ldb = batch, .ldc = hidden},
               Destination::kOverwrite);
}

template <class E>
std::size_t PanelProducts<E>::packed_size() const {
  return shape_.hidden * shape_.batch;
}

template <class E>
std::size_t PanelProducts<E>::scratch_size() const {
  // P^T, and for bf16 the panel in pairs.
  return kPanelRows * shape_.batch + (kElement<E> == Element::kBf16 ? panel_size() : 0);
}

template <class E>
void PanelProducts<E>::pack_row(const float* row, E* panel_row) const {
  if constexpr (kElement<E> == Element::kF32) {
    std::copy_n(row, shape_.hidden, panel_row);
  } else {
    kernels_->to_bf16(row, panel_row, shape_.hidden);
  }
}

template <class E>
void PanelProducts<E>::pack_hidden(const float* h, E* packed) const {
  const auto [hidden, batch] = shape_;
  if constexpr (kElement<E> == Element::kF32) {
    kernels_->transpose(
        {.in = h, .out = packed, .rows = batch, .columns = hidden, .in_stride = hidden, .out_stride = batch});
  } else {
    std::array<Bf16, kTileRows * kTileColumns> tile;
    for (std::size_t b = 0; b < batch; b += kTileRows) {
      for (std::size_t c = 0; c < hidden; c += kTileColumns) {
        for (std::size_t r = 0; r < kTileRows; ++r) {
          kernels_->to_bf16(h + (b + r) * hidden + c, tile.data() + r * kTileColumns, kTileColumns);
        }
        kernels_->transpose_pairs({.in = tile.data(),
                                   .out = packed + c * batch + 2 * b,
                                   .rows = kTileRows,
                                   .columns = kTileColumns,
                                   .in_stride = kTileColumns,
                                   .out_stride = 2 * batch});
      }
    }
  }
}

template <class E>
void PanelProducts<E>::pack_scaled_hidden(const float* h, const float* inv, E* packed) const {
  const auto [hidden, batch] = shape_;
  if constexpr (kElement<E> == Element::kF32) {
    for (std::size_t b = 0; b < batch; ++b) {
      scaled(*kernels_, h + b * hidden, inv[b], hidden, packed + b * hidden);
    }
  } else {
    std::array<Bf16, 2 * kTileColumns> tile;
    for (std::size_t b = 0; b < batch; b += 2) {
      for (std::size_t c = 0; c < hidden; c += kTileColumns) {
        scaled(*kernels_, h + b * hidden + c, inv[b], kTileColumns, tile.data());
        scaled(*kernels_, h + (b + 1) * hidden + c, inv[b + 1], kTileColumns, tile.data() + kTileColumns);
        kernels_->interleave_pairs(tile.data(), tile.data() + kTileColumns, packed + b * hidden + 2 * c,
                                   kTileColumns);
      }
    }
  }
}

template <class E>
void PanelProducts<E>::scores(const E* panel, const E* packed_hidden, float* s) const {
  const auto [hidden, batch] = shape_;
  if (scores_ != nullptr) return call_generated(scores_, packed_hidden, panel, s);
  std::fill_n(s, kPanelRows * batch, 0.0F);
  multiply(*kernels_, Multiply<E>{.a = packed_hidden,
                                  .b = panel,
                                  .c = s,
                                  .m = batch,
                                  .n = kPanelRows,
                                  .k = hidden,
                                  .lda = batch,
                                  .ldb = panel_stride(),
                                  .ldc = batch});
}

template <class E>
void PanelProducts<E>::hidden_gradient(const HiddenGradient& operands) const {
  const auto [hidden, batch] = shape_;
  E* const transposed = operands.scratch;
  transpose(*kernels_, Transpose<E>{.in = operands.p,
                                    .out = transposed,
                                    .rows = kPanelRows,
                                    .columns = batch,
                                    .in_stride = batch,
                                    .out_stride = kPanelRows});
  const E* panel = operands.panel;
  if constexpr (kElement<E> == Element::kBf16) {
    E* const pairs = operands.scratch + kPanelRows * batch;
    for (std::size_t r = 0; r < kPanelRows; r += 2) {
      const E* row = operands.panel + r * panel_stride();
      kernels_->interleave_pairs(row, row + panel_stride(), pairs + r * panel_stride(), hidden);
    }
    panel = pairs;
  }
  if (hidden_gradient_ != nullptr) return call_generated(hidden_gradient_, panel, transposed, operands.dh);
  multiply(*kernels_, Multiply<E>{.a = panel,
                                  .b = transposed,
                                  .c = operands.dh,
                                  .m = hidden,
                                  .n = batch,
                                  .k = kPanelRows,
                                  .lda = panel_stride(),
                                  .ldb = kPanelRows,
                                  .ldc = hidden});
}

template <class E>
void PanelProducts<E>::weight_gradient(const E* p, const E* packed_scaled_hidden, float* dw) const {
  const auto [hidden, batch] = shape_;
  if (weight_gradient_ != nullptr) return call_generated(weight_gradient_, packed_scaled_hidden, p, dw);
  std::fill_n(dw, kPanelRows * hidden, 0.0F);
  multiply(*kernels_, Multiply<E>{.a = packed_scaled_hidden,
                                  .b = p,
                                  .c = dw,
                                  .m = hidden,
                                  .n = kPanelRows,
                                  .k = batch,
                                  .lda = hidden,
                                  .ldb = batch,
                                  .ldc = hidden});
}

template class PanelProducts<float>;
template class PanelProducts<Bf16>;

}  // namespace gossamer::kernels
