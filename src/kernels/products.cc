// SPDX-License-Identifier: Apache-2.0
#include "kernels/products.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/check.h"
#include "kernels/generated.h"

namespace gossamer::kernels {
namespace {

// Rows and columns of the tile in which an operand is rounded and rearranged.
constexpr std::size_t kTileRows = kLanes;
constexpr std::size_t kTileColumns = kPanelMultiple;

// Blocks of A: 64 wide and 32 KiB in all, measured best for all shapes on a 32 KiB first-level cache
// (panel_softmax.md, "Blocks").
constexpr std::size_t kBlockColumns = 64;
constexpr std::size_t kBlockBytes = std::size_t{32} << 10;

// The largest of max, max/2, ... 32 that divides n. Requires n % 32 == 0 and max 32 times a power of two.
std::size_t block_of(std::size_t n, std::size_t max) {
  while (n % max != 0) max /= 2;
  return max;
}

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
  const auto plan = [](Plan p) {
    p.block_m = block_of(p.m, kBlockColumns);
    p.block_k = block_of(p.k, kBlockBytes / kBlockColumns / sizeof(E));
    p.lda = p.block_m;
    p.ldb = p.k;
    p.ldc = p.m;
    p.a_block = p.k * p.block_m;
    return p;
  };
  const auto code = [isa](const Plan& p, Destination destination) {
    return generate(isa, kElement<E>,
                    {.m = p.block_m, .n = p.n, .k = p.block_k, .lda = p.lda, .ldb = p.ldb, .ldc = p.ldc},
                    destination);
  };
  scores_ = plan({.m = batch, .n = kPanelRows, .k = hidden});
  scores_.ldb = panel_stride();
  scores_.first = code(scores_, Destination::kOverwrite);
  scores_.next = code(scores_, Destination::kAdd);
  weight_gradient_ = plan({.m = hidden, .n = kPanelRows, .k = batch});
  weight_gradient_.first = code(weight_gradient_, Destination::kOverwrite);
  weight_gradient_.next = code(weight_gradient_, Destination::kAdd);
  hidden_gradient_ = plan({.m = hidden, .n = batch, .k = kPanelRows});
  if (kElement<E> == Element::kF32) {  // the panel itself
    hidden_gradient_.lda = panel_stride();
    hidden_gradient_.a_block = hidden_gradient_.block_m;
  }
  hidden_gradient_.first = hidden_gradient_.next = code(hidden_gradient_, Destination::kAdd);
}

// Where our own product serves, the caller has zeroed a C that is to be overwritten.
template <class E>
void PanelProducts<E>::run(const Plan& plan, const Operands& operands) const {
  for (std::size_t i = 0; i < plan.m; i += plan.block_m) {
    const E* const a = operands.a + i / plan.block_m * plan.a_block;
    for (std::size_t q = 0; q < plan.k; q += plan.block_k) {
      const Generated code = q == 0 ? plan.first : plan.next;
      if (code != nullptr) {
        call_generated(code, a + q * plan.lda, operands.b + q, operands.c + i);
      } else {
        multiply(*kernels_, Multiply<E>{.a = a + q * plan.lda,
                                        .b = operands.b + q,
                                        .c = operands.c + i,
                                        .m = plan.block_m,
                                        .n = plan.n,
                                        .k = plan.block_k,
                                        .lda = plan.lda,
                                        .ldb = plan.ldb,
                                        .ldc = plan.ldc});
      }
    }
  }
}

template <class E>
std::size_t PanelProducts<E>::packed_size() const {
  return shape_.hidden * shape_.batch;
}

template <class E>
std::size_t PanelProducts<E>::scratch_size() const {
  // Room for P^T, and for bf16 also for the panel in pairs.
  return kPanelRows * (shape_.batch + (kElement<E> == Element::kBf16 ? shape_.hidden : 0));
}

template <class E>
void PanelProducts<E>::pack_row(const float* row, E* panel_row) const {
  if constexpr (kElement<E> == Element::kF32) {
    std::copy_n(row, shape_.hidden, panel_row);
  } else {
    kernels_->to_bf16(row, panel_row, shape_.hidden);
  }
}

// [batch / block][hidden][block], for bf16 [batch / block][hidden / 2][block][2].
template <class E>
void PanelProducts<E>::pack_hidden(const float* h, E* packed, SampleRange samples) const {
  const std::size_t hidden = shape_.hidden;
  const std::size_t block = scores_.block_m;
  for (std::size_t b = samples.begin; b < samples.end; b += kTileRows) {
    E* const out = packed + b / block * scores_.a_block;
    if constexpr (kElement<E> == Element::kF32) {
      kernels_->transpose({.in = h + b * hidden,
                           .out = out + b % block,
                           .rows = kTileRows,
                           .columns = hidden,
                           .in_stride = hidden,
                           .out_stride = block});
    } else {
      std::array<Bf16, kTileRows * kTileColumns> tile;
      for (std::size_t c = 0; c < hidden; c += kTileColumns) {
        for (std::size_t r = 0; r < kTileRows; ++r) {
          kernels_->to_bf16(h + (b + r) * hidden + c, tile.data() + r * kTileColumns, kTileColumns);
        }
        kernels_->transpose_pairs({.in = tile.data(),
                                   .out = out + c * block + 2 * (b % block),
                                   .rows = kTileRows,
                                   .columns = kTileColumns,
                                   .in_stride = kTileColumns,
                                   .out_stride = 2 * block});
      }
    }
  }
}

// [hidden / block][batch][block], for bf16 [hidden / block][batch / 2][block][2].
template <class E>
void PanelProducts<E>::pack_scaled_hidden(const float* h, const float* inv, E* packed,
                                          SampleRange samples) const {
  const std::size_t hidden = shape_.hidden;
  const std::size_t block = weight_gradient_.block_m;
  for (std::size_t b = samples.begin; b < samples.end; b += 2) {
    for (std::size_t c = 0; c < hidden; c += kTileColumns) {
      std::array<E, 2 * kTileColumns> tile;
      scaled(*kernels_, h + b * hidden + c, inv[b], kTileColumns, tile.data());
      scaled(*kernels_, h + (b + 1) * hidden + c, inv[b + 1], kTileColumns, tile.data() + kTileColumns);
      E* const out = packed + c / block * weight_gradient_.a_block + b * block;
      if constexpr (kElement<E> == Element::kF32) {
        std::copy_n(tile.data(), kTileColumns, out + c % block);
        std::copy_n(tile.data() + kTileColumns, kTileColumns, out + block + c % block);
      } else {
        kernels_->interleave_pairs(tile.data(), tile.data() + kTileColumns, out + 2 * (c % block),
                                   kTileColumns);
      }
    }
  }
}

template <class E>
void PanelProducts<E>::scores(const E* panel, const E* packed_hidden, float* s) const {
  if (!generated()) std::fill_n(s, kPanelRows * shape_.batch, 0.0F);
  run(scores_, {.a = packed_hidden, .b = panel, .c = s});
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
  if constexpr (kElement<E> == Element::kBf16) {  // [hidden / block][32][block][2]
    E* const pairs = operands.scratch + kPanelRows * batch;
    const std::size_t block = hidden_gradient_.block_m;
    for (std::size_t r = 0; r < kPanelRows; r += 2) {
      const E* const row = operands.panel + r * panel_stride();
      for (std::size_t c = 0; c < hidden; c += block) {
        kernels_->interleave_pairs(row + c, row + panel_stride() + c,
                                   pairs + c / block * hidden_gradient_.a_block + r * block, block);
      }
    }
    panel = pairs;
  }
  run(hidden_gradient_, {.a = panel, .b = transposed, .c = operands.dh});
}

template <class E>
void PanelProducts<E>::weight_gradient(const E* p, const E* packed_scaled_hidden, float* dw) const {
  if (!generated()) std::fill_n(dw, kPanelRows * shape_.hidden, 0.0F);
  run(weight_gradient_, {.a = packed_scaled_hidden, .b = p, .c = dw});
}

template class PanelProducts<float>;
template class PanelProducts<Bf16>;

}  // namespace gossamer::kernels
