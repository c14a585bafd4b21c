// SPDX-License-Identifier: Apache-2.0
//
// Every function of every table that this CPU runs, against double precision or an exact model.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/reference.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kKernelInputs{.seed = 4711};

// Around the widths of all vectors, of unrolled loops and of column blocks.
const std::vector<std::size_t> kKernelSizes = {16, 32, 48, 64, 80, 112, 128, 144, 256, 272, 1024};

std::vector<Bf16> random_bf16(std::size_t n, std::uint64_t stream) {
  std::vector<Bf16> row(n);
  const std::vector<float> x = kKernelInputs.row(n, stream);
  std::transform(x.begin(), x.end(), row.begin(), reference::to_bf16);
  return row;
}

class KernelsOnIsa : public OnIsa {};

// The table is the one asked for, and complete. No narrower instruction set has its functions.
TEST_P(KernelsOnIsa, TableIsComplete) {
  const Kernels& k = kernels();
  EXPECT_EQ(k.isa, GetParam());
  EXPECT_TRUE(k.add_scaled && k.scale && k.dot && k.dot_bf16 && k.dot_bytes && k.squared_norm && k.to_bf16 &&
              k.from_bf16 && k.to_int8 && k.from_int8);
  EXPECT_TRUE(k.interleave_pairs && k.transpose && k.transpose_bf16 && k.transpose_pairs);
  EXPECT_TRUE(k.exp_row && k.exp_row_bf16 && k.adam_row && k.adam_blocks && k.weighted_sum && k.select_above);
  EXPECT_TRUE(k.multiply && k.multiply_bf16 && k.multiply_int16);
  EXPECT_TRUE(k.sign_codes && k.winner_codes);
  for (const auto f : k.activate) EXPECT_NE(f, nullptr);
  for (const auto f : k.activate_backward) EXPECT_NE(f, nullptr);
  if (GetParam() == Isa::kAvx512Bf16) return;  // which has AVX-512's for all but the products of bf16
  for (const Isa narrower : kAllIsas) {
    if (narrower >= GetParam()) break;
    const Kernels& other = kernels_for(narrower);
    EXPECT_NE(k.dot, other.dot) << name(narrower);
    EXPECT_NE(k.transpose, other.transpose) << name(narrower);
    EXPECT_NE(k.sign_codes, other.sign_codes) << name(narrower);
  }
}

// y += a x and y *= a differ from double by a rounding, and write nothing behind the row.
TEST_P(KernelsOnIsa, AddsAndScales) {
  for (const std::size_t n : kKernelSizes) {
    const std::vector<float> x = kKernelInputs.row(n, 1);
    const std::vector<float> before = kKernelInputs.row(n + 1, 2);
    std::vector<float> added = before;
    std::vector<float> scaled = before;
    kernels().add_scaled(added.data(), x.data(), 0.75F, n);
    kernels().scale(scaled.data(), 0.75F, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(added[i], wide(before[i]) + 0.75 * wide(x[i]), 1e-6) << n << " " << i;
      EXPECT_EQ(scaled[i], 0.75F * before[i]) << n << " " << i;
    }
    EXPECT_EQ(added[n], before[n]);
    EXPECT_EQ(scaled[n], before[n]);
  }
}

// Dot products err by less than n roundings of the sum of magnitudes.
TEST_P(KernelsOnIsa, DotMatchesDouble) {
  for (const std::size_t n : kKernelSizes) {
    const std::vector<float> x = kKernelInputs.row(n, 1);
    const std::vector<float> y = kKernelInputs.row(n, 2);
    const std::vector<Bf16> z = random_bf16(n, 3);
    double dot = 0;
    double dot_bf16 = 0;
    double norm = 0;
    for (std::size_t i = 0; i < n; ++i) {
      dot += wide(x[i]) * wide(y[i]);
      dot_bf16 += wide(reference::from_bf16(z[i])) * wide(y[i]);
      norm += wide(x[i]) * wide(x[i]);
    }
    const double bound = 6e-8 * static_cast<double>(n) * std::sqrt(static_cast<double>(n));
    EXPECT_NEAR(kernels().dot(x.data(), y.data(), n), dot, bound) << n;
    EXPECT_NEAR(kernels().dot_bf16(z.data(), y.data(), n), dot_bf16, bound) << n;
    EXPECT_NEAR(kernels().squared_norm(x.data(), n), norm, 2e-7 * static_cast<double>(n) * norm) << n;
  }
}

// bf16 rounding gives the nearest of the two neighbours, the even one at ties. It is tried on all upper
// halves and lower halves around the tie, both signs, denormals, infinities and NaN included.
TEST_P(KernelsOnIsa, RoundsToNearestEven) {
  std::vector<float> x;
  for (std::uint32_t top = 0; top < 0x10000U; top += 3) {
    for (const std::uint32_t low : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      x.push_back(std::bit_cast<float>((top << 16) | low));
    }
  }
  x.resize((x.size() + kLanes - 1) / kLanes * kLanes);
  std::vector<Bf16> out(x.size());
  kernels().to_bf16(x.data(), out.data(), x.size());
  std::vector<float> back(x.size());
  kernels().from_bf16(out.data(), back.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::uint32_t{out[i].bits} << 16);
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(back[i])) << std::hex << bits;
      continue;
    }
    // Magnitudes of floats rise with their bits, so rounding can be done on integers.
    const std::uint32_t down = bits >> 16;
    const std::uint32_t rest = bits & 0xffffU;
    const bool up = rest > 0x8000U || (rest == 0x8000U && (down & 1U) != 0);
    ASSERT_EQ(out[i].bits, down + (up ? 1U : 0U)) << std::hex << bits;
  }
}

// Every transposition moves element (r, c) to (c, r), honours strides and touches nothing between rows.
TEST_P(KernelsOnIsa, Transposes) {
  for (const std::size_t rows : {16U, 48U, 64U}) {
    for (const std::size_t columns : {32U, 96U}) {
      const std::size_t in_stride = columns + 32;
      const std::size_t out_stride = rows * 2 + 32;
      std::vector<float> in(rows * in_stride);
      std::iota(in.begin(), in.end(), 1.0F);
      std::vector<Bf16> in16(in.size());
      for (std::size_t i = 0; i < in.size(); ++i) in16[i].bits = static_cast<std::uint16_t>(i);
      std::vector<float> out(columns * out_stride, -1.0F);
      std::vector<Bf16> halves(out.size(), Bf16{0xffff});
      std::vector<Bf16> pairs(out.size(), Bf16{0xffff});
      kernels().transpose({in.data(), out.data(), rows, columns, in_stride, out_stride});
      kernels().transpose_bf16({in16.data(), halves.data(), rows, columns, in_stride, out_stride});
      kernels().transpose_pairs({in16.data(), pairs.data(), rows, columns, in_stride, out_stride});
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = 0; r < out_stride; ++r) {
          const bool inside = r < rows;
          ASSERT_EQ(out[c * out_stride + r], inside ? in[r * in_stride + c] : -1.0F) << r << " " << c;
          ASSERT_EQ(halves[c * out_stride + r], inside ? in16[r * in_stride + c] : Bf16{0xffff})
              << r << " " << c;
        }
      }
      for (std::size_t c = 0; c < columns / 2; ++c) {
        for (std::size_t r = 0; r < out_stride; ++r) {
          const Bf16 expected = r < 2 * rows ? in16[r / 2 * in_stride + 2 * c + r % 2] : Bf16{0xffff};
          ASSERT_EQ(pairs[c * out_stride + r], expected) << r << " " << c;
        }
      }
    }
  }
}

// Interleaving puts row0 at even and row1 at odd places.
TEST_P(KernelsOnIsa, InterleavesPairs) {
  for (const std::size_t n : kKernelSizes) {
    const std::vector<Bf16> row0 = random_bf16(n, 1);
    const std::vector<Bf16> row1 = random_bf16(n, 2);
    std::vector<Bf16> out(2 * n);
    kernels().interleave_pairs(row0.data(), row1.data(), out.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[2 * i], row0[i]);
      ASSERT_EQ(out[2 * i + 1], row1[i]);
    }
  }
}

// exp_row: over the whole clamped range the relative error is below 5e-7 in f32 and half a bf16 step in bf16.
// Sums take what was stored. A NaN score stays visible.
TEST_P(KernelsOnIsa, ExpRow) {
  constexpr std::size_t kCount = 4096;
  std::vector<float> scores(kCount);
  for (std::size_t i = 0; i < kCount; ++i) scores[i] = -70.0F + 140.0F * static_cast<float>(i) / kCount;
  scores[1] = kNan;
  scores[2] = kInfinity;
  scores[3] = -kInfinity;
  std::vector<float> shift = kKernelInputs.row(kCount, 1);
  const std::vector<float> before(kCount, 2.0F);
  std::vector<float> sums = before;
  std::vector<float> sums16 = before;
  std::vector<float> out = scores;  // in place
  std::vector<Bf16> out16(kCount);
  kernels().exp_row({scores.data(), 0.25F, shift.data(), sums.data(), kCount}, out.data());
  kernels().exp_row_bf16({scores.data(), 0.25F, shift.data(), sums16.data(), kCount}, out16.data());
  std::vector<float> aliased = scores;
  std::vector<float> sums_aliased = before;
  kernels().exp_row({aliased.data(), 0.25F, shift.data(), sums_aliased.data(), kCount}, aliased.data());
  for (std::size_t i = 0; i < kCount; ++i) {
    if (i == 1) {
      EXPECT_TRUE(std::isnan(out[i]) && std::isnan(sums[i]) && std::isnan(reference::from_bf16(out16[i])));
      continue;
    }
    const float x = scores[i] + 0.25F - shift[i];
    const double e = std::exp(std::clamp(wide(x), -60.0, 60.0));
    ASSERT_NEAR(out[i], e, 5e-7 * e) << x;
    ASSERT_NEAR(reference::from_bf16(out16[i]), e, 0.00392 * e) << x;
    ASSERT_EQ(sums[i], 2.0F + out[i]) << x;
    ASSERT_EQ(sums16[i], 2.0F + reference::from_bf16(out16[i])) << x;
    ASSERT_EQ(aliased[i], out[i]);
    ASSERT_EQ(sums_aliased[i], sums[i]);
  }
}

double activation_in_double(Activation f, double z) {
  if (f == Activation::kRelu) return std::max(z, 0.0);
  return f == Activation::kTanh ? std::tanh(z) : z;
}

// Forward is f(z) then dropout; backward is the derivative of forward, checked by central differences.
TEST_P(KernelsOnIsa, Activations) {
  for (const Activation f : {Activation::kRelu, Activation::kIdentity, Activation::kTanh}) {
    const auto index = static_cast<std::size_t>(f);
    for (const std::size_t n : kKernelSizes) {
      std::vector<float> z = kKernelInputs.row(n, 1);
      z[3] = 0;
      z[4] = 100;
      z[5] = -100;
      std::vector<std::uint8_t> kept(n);
      for (std::size_t i = 0; i < n; ++i) kept[i] = i % 3 == 0 ? 0 : static_cast<std::uint8_t>(i % 2 + 1);
      for (const std::uint8_t* mask :
           {static_cast<const std::uint8_t*>(nullptr), std::as_const(kept).data()}) {
        std::vector<float> y = z;
        std::vector<float> h(n);
        kernels().activate[index]({y.data(), h.data(), mask, 1.25F, n});
        std::vector<float> gradient = kKernelInputs.row(n, 2);
        const std::vector<float> above = gradient;
        kernels().activate_backward[index]({y.data(), gradient.data(), mask, 1.25F, n});
        for (std::size_t i = 0; i < n; ++i) {
          const double factor = mask == nullptr ? 1.0 : (kept[i] != 0 ? 1.25 : 0.0);
          const double at = wide(z[i]);
          ASSERT_NEAR(y[i], activation_in_double(f, at), 6e-7) << z[i];
          ASSERT_NEAR(h[i], factor * activation_in_double(f, at), 1e-6) << z[i];
          double slope = (activation_in_double(f, at + 1e-4) - activation_in_double(f, at - 1e-4)) / 2e-4;
          if (f == Activation::kRelu && z[i] == 0.0F) slope = 0;
          ASSERT_NEAR(gradient[i], factor * slope * wide(above[i]), 1e-5) << z[i];
        }
      }
    }
  }
}

// A diverged unit (NaN) is not hidden by any activation.
TEST_P(KernelsOnIsa, ActivationsKeepNan) {
  for (const auto activate : kernels().activate) {
    std::vector<float> y(16, 0.5F);
    y[7] = kNan;
    std::vector<float> h(16);
    activate({y.data(), h.data(), nullptr, 1.0F, 16});
    EXPECT_TRUE(std::isnan(h[7]));
    EXPECT_FALSE(std::isnan(h[6]));
  }
}

// weighted_sum equals the sum in double for lists of any length, empty ones and repeated rows included. The
// beginning of a list gives the same bits whether or not the rest of the list is fetched ahead.
TEST_P(KernelsOnIsa, WeightedSum) {
  constexpr std::uint32_t kRows = 50;
  for (const std::size_t width : kKernelSizes) {
    const std::size_t stride = width + 16;
    const std::vector<float> table = kKernelInputs.row(kRows * stride, 1);
    for (const std::size_t count : {0U, 1U, 5U, 6U, 7U, 75U}) {
      Rng rng = kKernelInputs.rng(count);
      std::vector<std::uint32_t> indices(count);
      for (auto& index : indices) index = static_cast<std::uint32_t>(rng.below(kRows));
      const std::vector<float> values = kKernelInputs.row(count, 2);
      std::vector<float> out(width + 1, kNan);
      kernels().weighted_sum({out.data(), table.data(), stride, indices.data(), values.data(), count, width});
      std::vector<float> begun(width);
      std::vector<float> alone(width);
      const std::size_t part = count / 2;
      kernels().weighted_sum(
          {begun.data(), table.data(), stride, indices.data(), values.data(), part, width, count - part});
      kernels().weighted_sum(
          {alone.data(), table.data(), stride, indices.data(), values.data(), part, width});
      ASSERT_EQ(begun, alone) << width << " " << count;
      for (std::size_t j = 0; j < width; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += wide(values[i]) * wide(table[indices[i] * stride + j]);
        ASSERT_NEAR(out[j], sum, 5e-5) << width << " " << count << " " << j;
      }
      EXPECT_TRUE(std::isnan(out[width]));
    }
  }
}

// select_above gives exactly the columns with an upper bound above the threshold, in rising order; ties and
// NaN are not above. The numbers are small integers, so every bound is exact however it is added up.
TEST_P(KernelsOnIsa, SelectAbove) {
  for (const std::size_t n : kKernelSizes) {
    Rng rng = kKernelInputs.rng(n);
    const auto draw = [&rng] { return static_cast<float>(rng.below(7)) - 2; };
    std::vector<std::int32_t> products(n);
    std::vector<float> scales(n);
    std::vector<float> norms(n);
    std::vector<float> errors(n);
    std::vector<float> thresholds(n);
    std::vector<float> upper(n);
    for (std::size_t i = 0; i < n; ++i) {
      products[i] = static_cast<std::int32_t>(rng.below(100)) - 50;
      scales[i] = draw();
      norms[i] = draw();
      errors[i] = draw();
      upper[i] = 0.5F * scales[i] * static_cast<float>(products[i] - 7) + 3 + 2 * errors[i] + 4 * norms[i];
      thresholds[i] = upper[i] + static_cast<float>(rng.below(9)) - 2;  // some above, many not, some ties
    }
    errors[n - 1] = kNan;
    thresholds[n - 2] = -kInfinity;
    std::vector<ScoreHit> hits(n);
    const std::size_t count = kernels().select_above({.products = products.data(),
                                                      .offset = 7,
                                                      .scale = 0.5F,
                                                      .bias = 3,
                                                      .norm = 2,
                                                      .error = 4,
                                                      .scales = scales.data(),
                                                      .norms = norms.data(),
                                                      .errors = errors.data(),
                                                      .thresholds = thresholds.data(),
                                                      .hits = hits.data(),
                                                      .n = n});
    std::size_t expected = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (!(upper[i] > thresholds[i])) continue;
      ASSERT_LT(expected, count);
      EXPECT_EQ(hits[expected].column, i);
      EXPECT_EQ(hits[expected].upper, upper[i]);
      ++expected;
    }
    EXPECT_EQ(count, expected);
  }
}

// Products of bytes are exact, also the largest.
TEST_P(KernelsOnIsa, DotOfBytes) {
  for (const std::size_t n : kKernelSizes) {
    Rng rng = kKernelInputs.rng(n);
    std::vector<std::uint8_t> x(n, 255);
    std::vector<std::int8_t> y(n, -128);
    EXPECT_EQ(kernels().dot_bytes(x.data(), y.data(), n), -255 * 128 * static_cast<std::int32_t>(n));
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<std::uint8_t>(rng.below(256));
      y[i] = static_cast<std::int8_t>(static_cast<int>(rng.below(256)) - 128);
      sum += int{x[i]} * int{y[i]};
    }
    EXPECT_EQ(kernels().dot_bytes(x.data(), y.data(), n), sum) << n;
  }
}

// The stand-in products add A B to C for strides wider than the matrix, and leave the gaps alone.
TEST_P(KernelsOnIsa, MultiplyWithStrides) {
  constexpr std::size_t kM = 48;
  constexpr std::size_t kN = 12;
  constexpr std::size_t kK = 34;
  const std::vector<float> a = kKernelInputs.row((kM + 16) * kK, 1);
  const std::vector<float> b = kKernelInputs.row(kN * (kK + 2), 2);
  const std::vector<Bf16> a16 = random_bf16((kM + 16) * kK, 3);
  const std::vector<Bf16> b16 = random_bf16(kN * (kK + 2), 4);
  const std::vector<float> before = kKernelInputs.row(kN * (kM + 16), 5);
  std::vector<float> c = before;
  std::vector<float> c16 = before;
  kernels().multiply({a.data(), b.data(), c.data(), kM, kN, kK, kM + 16, kK + 2, kM + 16});
  kernels().multiply_bf16({a16.data(), b16.data(), c16.data(), kM, kN, kK, kM + 16, kK + 2, kM + 16});
  for (std::size_t j = 0; j < kN; ++j) {
    for (std::size_t i = 0; i < kM + 16; ++i) {
      const std::size_t at = j * (kM + 16) + i;
      double sum = wide(before[at]);
      double sum16 = sum;
      for (std::size_t q = 0; q < kK && i < kM; ++q) {
        sum += wide(a[q * (kM + 16) + i]) * wide(b[j * (kK + 2) + q]);
        sum16 += wide(reference::from_bf16(a16[(q / 2 * (kM + 16) + i) * 2 + q % 2])) *
                 wide(reference::from_bf16(b16[j * (kK + 2) + q]));
      }
      ASSERT_NEAR(c[at], sum, 2e-5) << i << " " << j;
      ASSERT_NEAR(c16[at], sum16, 2e-5) << i << " " << j;
    }
  }
}

// The stand-in product of 16-bit integers is exact, adds to C and leaves the gaps alone.
TEST_P(KernelsOnIsa, MultiplyIntegers) {
  constexpr std::size_t kM = 48;
  constexpr std::size_t kN = 12;
  constexpr std::size_t kK = 34;
  Rng rng = kKernelInputs.rng();
  const auto draw = [&rng] { return static_cast<std::int16_t>(static_cast<int>(rng.below(511)) - 255); };
  std::vector<std::int16_t> a((kM + 16) * kK);
  std::vector<std::int16_t> b(kN * (kK + 2));
  for (auto& x : a) x = draw();
  for (auto& x : b) x = draw();
  std::vector<std::int32_t> c(kN * (kM + 16), 5);
  kernels().multiply_int16({a.data(), b.data(), c.data(), kM, kN, kK, kM + 16, kK + 2, kM + 16});
  for (std::size_t j = 0; j < kN; ++j) {
    for (std::size_t i = 0; i < kM + 16; ++i) {
      std::int32_t sum = 5;
      for (std::size_t q = 0; q < kK && i < kM; ++q) {
        sum += int{a[(q / 2 * (kM + 16) + i) * 2 + q % 2]} * int{b[j * (kK + 2) + q]};
      }
      ASSERT_EQ(c[j * (kM + 16) + i], sum) << i << " " << j;
    }
  }
}

// The same call on the same input gives the same bits.
TEST_P(KernelsOnIsa, SameBitsAgain) {
  const std::vector<float> x = kKernelInputs.row(1024, 1);
  const std::vector<float> y = kKernelInputs.row(1024, 2);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(kernels().dot(x.data(), y.data(), 1024)),
            std::bit_cast<std::uint32_t>(kernels().dot(x.data(), y.data(), 1024)));
}

INSTANTIATE_TEST_SUITE_P(, KernelsOnIsa, testing::ValuesIn(kAllIsas), isa_word);

}  // namespace
}  // namespace gossamer::kernels
