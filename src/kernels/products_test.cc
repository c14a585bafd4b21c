// SPDX-License-Identifier: Apache-2.0
#include "kernels/products.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "base/aligned_array.h"
#include "kernels/reference.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kProductInputs{.seed = 20261};

float element(const float& x) { return x; }
float element(const Bf16& x) { return reference::from_bf16(x); }
void set(float& to, float x) { to = x; }
void set(Bf16& to, float x) { to = reference::to_bf16(x); }

// A number as the product reads it: rounded to the element type.
template <class E>
double rounded(float x) {
  E e{};
  set(e, x);
  return static_cast<double>(element(e));
}

// A sum of k products in f32 errs by at most about k roundings of the sum of magnitudes. Here half of that is
// never reached. A wrong element would be off by about 1.
double tolerance(std::size_t k) { return 1e-6 * static_cast<double>(k) + 1e-5; }

// All operands of the three products for one shape.
template <class E>
struct Panel {
  explicit Panel(const PanelProducts<E>& products)
      : hidden(products.shape().hidden),
        batch(products.shape().batch),
        w(kProductInputs.matrix(kPanelRows * hidden, 1)),
        h(kProductInputs.matrix(batch * hidden, 2)),
        inv(kProductInputs.matrix(batch, 3)),
        panel(products.panel_size()),
        packed(products.packed_size()),
        p(kPanelRows * batch),
        scratch(products.scratch_size()) {
    for (std::size_t r = 0; r < kPanelRows; ++r) {
      products.pack_row(w.data() + r * hidden, panel.data() + r * products.panel_stride());
    }
    const AlignedArray<float> values = kProductInputs.matrix(kPanelRows * batch, 4);
    for (std::size_t i = 0; i < p.size(); ++i) set(p[i], values[i]);
  }

  std::size_t hidden;
  std::size_t batch;
  AlignedArray<float> w;
  AlignedArray<float> h;
  AlignedArray<float> inv;
  AlignedArray<E> panel;
  AlignedArray<E> packed;
  AlignedArray<E> p;
  AlignedArray<E> scratch;
};

template <class E>
void expect_scores(const PanelProducts<E>& products, Panel<E>& x) {
  AlignedArray<float> s(kPanelRows * x.batch);
  for (float& value : s.span()) value = NAN;  // must be overwritten
  products.pack_hidden(x.h.data(), x.packed.data());
  products.scores(x.panel.data(), x.packed.data(), s.data());
  for (std::size_t r = 0; r < kPanelRows; ++r) {
    for (std::size_t b = 0; b < x.batch; ++b) {
      double sum = 0;
      for (std::size_t c = 0; c < x.hidden; ++c) {
        sum += rounded<E>(x.w[r * x.hidden + c]) * rounded<E>(x.h[b * x.hidden + c]);
      }
      ASSERT_NEAR(s[r * x.batch + b], sum, tolerance(x.hidden)) << "row " << r << " sample " << b;
    }
  }
}

template <class E>
void expect_hidden_gradient(const PanelProducts<E>& products, Panel<E>& x) {
  const AlignedArray<float> before = kProductInputs.matrix(x.batch * x.hidden, 5);
  AlignedArray<float> dh(before.size());
  for (std::size_t i = 0; i < dh.size(); ++i) dh[i] = before[i];
  products.hidden_gradient(
      {.p = x.p.data(), .panel = x.panel.data(), .scratch = x.scratch.data(), .dh = dh.data()});
  for (std::size_t b = 0; b < x.batch; ++b) {
    for (std::size_t c = 0; c < x.hidden; ++c) {
      double sum = static_cast<double>(before[b * x.hidden + c]);
      for (std::size_t r = 0; r < kPanelRows; ++r) {
        sum += static_cast<double>(element(x.p[r * x.batch + b])) * rounded<E>(x.w[r * x.hidden + c]);
      }
      ASSERT_NEAR(dh[b * x.hidden + c], sum, tolerance(kPanelRows)) << "sample " << b << " unit " << c;
    }
  }
}

template <class E>
void expect_weight_gradient(const PanelProducts<E>& products, Panel<E>& x) {
  AlignedArray<float> dw(kPanelRows * x.hidden);
  for (float& value : dw.span()) value = NAN;  // must be overwritten
  products.pack_scaled_hidden(x.h.data(), x.inv.data(), x.packed.data());
  products.weight_gradient(x.p.data(), x.packed.data(), dw.data());
  for (std::size_t r = 0; r < kPanelRows; ++r) {
    for (std::size_t c = 0; c < x.hidden; ++c) {
      double sum = 0;
      for (std::size_t b = 0; b < x.batch; ++b) {
        sum +=
            static_cast<double>(element(x.p[r * x.batch + b])) * rounded<E>(x.inv[b] * x.h[b * x.hidden + c]);
      }
      ASSERT_NEAR(dw[r * x.hidden + c], sum, tolerance(x.batch)) << "row " << r << " unit " << c;
    }
  }
}

class PanelProductsOnIsa : public OnIsa {};

// From the smallest shape over odd multiples of 32 to strides that alias in the cache.
constexpr std::array<PanelShape, 6> kShapes = {
    {{32, 32}, {64, 96}, {96, 64}, {128, 256}, {256, 32}, {1024, 64}}};

template <class E>
void expect_all(Isa isa) {
  for (const PanelShape shape : kShapes) {
    SCOPED_TRACE(testing::Message() << name(isa) << " hidden " << shape.hidden << " batch " << shape.batch
                                    << " seed " << kProductInputs.seed);
    const PanelProducts<E> products(isa, shape);
    Panel<E> panel(products);
    expect_scores(products, panel);
    expect_hidden_gradient(products, panel);
    expect_weight_gradient(products, panel);
  }
}

// The three products of f32 are those of double precision.
TEST_P(PanelProductsOnIsa, F32MatchesDouble) { expect_all<float>(GetParam()); }

// The three products of bf16 operands are those of double precision on the rounded operands.
TEST_P(PanelProductsOnIsa, Bf16MatchesDouble) { expect_all<Bf16>(GetParam()); }

// LIBXSMM serves exactly where it is known to have kernels; elsewhere ours does.
TEST_P(PanelProductsOnIsa, GeneratedWhereKnown) {
  const Isa isa = GetParam();
  EXPECT_EQ(PanelProducts<float>(isa, {.hidden = 128, .batch = 256}).generated(), isa >= Isa::kAvx2);
  EXPECT_EQ(PanelProducts<Bf16>(isa, {.hidden = 128, .batch = 256}).generated(), isa >= Isa::kAvx512);
}

INSTANTIATE_TEST_SUITE_P(, PanelProductsOnIsa, testing::ValuesIn(kAllIsas), isa_word);

// padded_to_panel gives the smallest multiple of 32 that holds n.
TEST(PanelShape, Pads) {
  for (std::size_t n = 1; n <= 100; ++n) {
    const std::size_t padded = padded_to_panel(n);
    EXPECT_EQ(padded % kPanelMultiple, 0U);
    EXPECT_GE(padded, n);
    EXPECT_LT(padded, n + kPanelMultiple);
  }
}

}  // namespace
}  // namespace gossamer::kernels
