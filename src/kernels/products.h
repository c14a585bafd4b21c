// SPDX-License-Identifier: Apache-2.0
//
// PanelProducts<E>: the three dense products of one panel of kPanelRows label rows with a whole batch
// (panel_softmax.md). E is float or Bf16; any instruction set serves. Sums are f32 throughout.
//
//   const PanelProducts<float> products(Isa::kAvx2, {.hidden = 128, .batch = 256});
//   products.pack_hidden(h, packed);                               // once per step
//   products.pack_row(w, panel + slot * products.panel_stride());  // 64 times per panel
//   products.scores(panel, packed, s);                             // S = W h^T
//   ... exp_row over the rows of S gives P ...
//   products.hidden_gradient({...});                               // dh += P^T W
//   products.pack_scaled_hidden(h, inv, packed_scaled);            // once per step, between the passes
//   products.weight_gradient(p, packed_scaled, dw);                // dW = P (inv h)
//
// Matrices are row-major and without gaps: S float[64][batch], P E[64][batch], h and dh float[batch][hidden],
// dW float[64][hidden]. Only the panel has gaps between rows: E[64][panel_stride()]. The packed operands have
// a private layout of packed_size() elements (f32: h^T and inv h; bf16: adjacent rows interleaved in pairs,
// "VNNI-2").
//
// LIBXSMM generates the products where it has a kernel for (E, ISA). Kernels::multiply takes its place
// elsewhere with the same layouts, so that both element types run on every machine. Preconditions: hidden and
// batch are multiples of kPanelMultiple and > 0. Buffers start on 64 bytes for speed.
//
// Thread rule: construct on one thread at a time in the process (LIBXSMM's generator has a process-wide
// target). A constructed object is immutable, and all its functions may run concurrently. Copies are cheap
// and equal.
#pragma once

#include <cstddef>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace gossamer::kernels {

inline constexpr std::size_t kPanelRows = 64;
inline constexpr std::size_t kPanelMultiple = 32;

// The smallest allowed size that holds n.
[[nodiscard]] constexpr std::size_t padded_to_panel(std::size_t n) {
  return (n + kPanelMultiple - 1) / kPanelMultiple * kPanelMultiple;
}

struct PanelShape {
  std::size_t hidden;
  std::size_t batch;
};

// Samples [begin, end) of a batch; both are multiples of kLanes.
struct SampleRange {
  std::size_t begin;
  std::size_t end;
};

template <class E>
class PanelProducts {
 public:
  // Requires supported(isa).
  PanelProducts(Isa isa, PanelShape shape);

  [[nodiscard]] Isa isa() const { return kernels_->isa; }
  [[nodiscard]] PanelShape shape() const { return shape_; }
  // Whether LIBXSMM's kernels serve (for reports).
  [[nodiscard]] bool generated() const { return scores_.first != nullptr; }

  // Sizes of the caller's buffers, in elements. Rows of a panel are panel_stride() >= hidden elements apart.
  // The gap of a cache line keeps rows with a power of two of elements from meeting in one set of the cache.
  [[nodiscard]] std::size_t panel_stride() const { return shape_.hidden + 64 / sizeof(E); }
  [[nodiscard]] std::size_t panel_size() const { return kPanelRows * panel_stride(); }
  [[nodiscard]] std::size_t packed_size() const;
  [[nodiscard]] std::size_t scratch_size() const;

  // One label row float[hidden] into a row of the panel.
  void pack_row(const float* row, E* panel_row) const;
  // h into the packed operand of `scores`. Disjoint ranges may be packed by several threads.
  void pack_hidden(const float* h, E* packed, SampleRange samples) const;
  void pack_hidden(const float* h, E* packed) const { pack_hidden(h, packed, {0, shape_.batch}); }
  // inv[b] * h[b] into the packed operand of `weight_gradient`; inv is [batch]. Ranges as above.
  void pack_scaled_hidden(const float* h, const float* inv, E* packed, SampleRange samples) const;
  void pack_scaled_hidden(const float* h, const float* inv, E* packed) const {
    pack_scaled_hidden(h, inv, packed, {0, shape_.batch});
  }

  // s[64][batch] = panel * h^T.
  void scores(const E* panel, const E* packed_hidden, float* s) const;

  // dh[batch][hidden] += p^T * panel. `scratch` is the calling thread's own.
  struct HiddenGradient {
    const E* p;
    const E* panel;
    E* scratch;
    float* dh;
  };
  void hidden_gradient(const HiddenGradient& operands) const;

  // dw[64][hidden] = p * (inv h).
  void weight_gradient(const E* p, const E* packed_scaled_hidden, float* dw) const;

 private:
  // A generated product (products.cc knows its true type).
  using Generated = void (*)();

  // C = A B or C += A B, column-major. m and k are cut into blocks, so that a block of A stays in the
  // first-level cache.
  struct Plan {
    std::size_t m = 0, n = 0, k = 0;
    std::size_t block_m = 0, block_k = 0;  // divide m and k
    std::size_t lda = 0, ldb = 0, ldc = 0;
    std::size_t a_block = 0;  // elements of A between blocks of m
    // For the first block of k and the later ones; null where ours serve.
    Generated first = nullptr;
    Generated next = nullptr;
  };
  struct Operands {
    const E* a;
    const E* b;
    float* c;
  };
  void run(const Plan& plan, const Operands& operands) const;

  const Kernels* kernels_;
  PanelShape shape_;
  Plan scores_;
  Plan hidden_gradient_;
  Plan weight_gradient_;
};

extern template class PanelProducts<float>;
extern template class PanelProducts<Bf16>;

}  // namespace gossamer::kernels
