// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/kernel_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "kernels/byte_products.h"
#include "kernels/dense_products.h"
#include "kernels/kernels.h"
#include "kernels/machine_peak.h"
#include "kernels/products.h"

namespace gossamer::commands {
namespace {

using kernels::Bf16;
using kernels::Isa;
using kernels::Kernels;

// Arrays larger than the caches, in rows of the hidden width, and small ones that stay in them.
struct Memory {
  explicit Memory(const BenchKernels& options)
      : width(options.hidden),
        rows(std::max<std::size_t>(64, (options.megabytes << 20) / sizeof(float) / width) / 64 * 64),
        a(rows * width),
        b(rows * width),
        c(rows * width),
        d(rows * width),
        bf16(rows * width),
        unsigned_bytes(rows * width),
        signed_bytes(rows * width),
        order(rows),
        values(rows) {
    Rng rng(1, Purpose::kSynthetic);
    for (AlignedArray<float>* array : {&a, &b, &c, &d}) {
      for (float& x : array->span()) x = rng.uniform();
    }
    const Kernels& k = kernels::kernels_for(kernels::best_isa());
    k.to_bf16(a.data(), bf16.data(), bf16.size());
    for (std::size_t i = 0; i < unsigned_bytes.size(); ++i) {
      unsigned_bytes[i] = static_cast<std::uint8_t>(i);
      signed_bytes[i] = static_cast<std::int8_t>(i % 127);
    }
    // Every row once, far from the one before.
    const std::size_t stride = rows / 64 * 37 + 1;
    for (std::size_t i = 0; i < rows; ++i) order[i] = static_cast<std::uint32_t>(i * stride % rows);
    std::fill(values.begin(), values.end(), 0.5F);
  }

  [[nodiscard]] double elements() const { return static_cast<double>(rows * width); }

  std::size_t width;
  std::size_t rows;
  AlignedArray<float> a;
  AlignedArray<float> b;
  AlignedArray<float> c;
  AlignedArray<float> d;
  AlignedArray<Bf16> bf16;
  AlignedArray<std::uint8_t> unsigned_bytes;
  AlignedArray<std::int8_t> signed_bytes;
  std::vector<std::uint32_t> order;
  std::vector<float> values;
};

class Meter {
 public:
  Meter(const host::Clock& clock, const BenchKernels& options) : clock_(clock), options_(options) {}

  // Seconds of one call, the least of five measurements. Of this process's own time: others that take the
  // core meanwhile do not count.
  template <class Body>
  double seconds(Body&& body) const {
    double least = std::numeric_limits<double>::infinity();
    std::uint64_t calls = 1;
    for (int measured = 0; measured < 5;) {
      const Duration begin = clock_.process_cpu();
      for (std::uint64_t i = 0; i < calls; ++i) body();
      const double taken = (clock_.process_cpu() - begin).seconds();
      // A simulated clock stands still: one measurement of one call then has to do.
      if (taken > 0 && taken * 1e3 < static_cast<double>(options_.milliseconds)) {
        calls *= 2;
        continue;
      }
      least = std::min(least, std::max(taken, 1e-9) / static_cast<double>(calls));
      ++measured;
    }
    return least;
  }

 private:
  const host::Clock& clock_;
  const BenchKernels& options_;
};

// All measurements of one instruction set.
class IsaBench {
 public:
  IsaBench(Isa isa, const Meter& meter, Memory& memory, const BenchKernels& options)
      : isa_(isa), k_(kernels::kernels_for(isa)), meter_(meter), m_(memory), options_(options) {}

  void run(BenchKernelsResult& result) {
    measure_peaks(result);
    measure_rows();
    measure_layouts();
    measure_activations();
    measure_codes();
    measure_multiplies();
    measure_panels<float>("f32", Bound::kF32);
    measure_panels<Bf16>("bf16", Bound::kBf16);
    measure_dense();
    // Where LIBXSMM has none or only emulates, a kernel of ours may be the best there is.
    for (const KernelSpeed& speed : speeds_) {
      if (speed.bound == Bound::kBf16) peak_.bf16 = std::max(peak_.bf16, speed.rate);
      if (speed.bound == Bound::kBytes) peak_.bytes = std::max(peak_.bytes, speed.rate);
    }
    result.peaks.push_back(peak_);
    for (KernelSpeed& speed : speeds_) {
      const std::array peaks = {result.memory, peak_.f32, peak_.bf16, peak_.bytes};
      const double peak = peaks[static_cast<std::size_t>(speed.bound)];
      speed.share = peak > 0 ? speed.rate / peak : 0;
      result.speeds.push_back(std::move(speed));
    }
  }

 private:
  // `work` bytes or operations in one call of body.
  template <class Body>
  double add(std::string kernel, Bound bound, double work, Body&& body) {
    const double rate = work / meter_.seconds(body) * 1e-9;
    speeds_.push_back({.kernel = std::move(kernel), .isa = isa_, .bound = bound, .rate = rate});
    return rate;
  }
  // A kernel on rows, through all of memory; `bytes` are moved for an element.
  template <class Body>
  void stream(std::string kernel, double bytes, Body&& body) {
    add(std::move(kernel), Bound::kMemory, bytes * m_.elements(), [&] {
      for (std::size_t row = 0; row < m_.rows; ++row) body(row * m_.width);
    });
  }

  void measure_peaks(BenchKernelsResult& result) {
    peak_.isa = isa_;
    constexpr std::size_t kRounds = 100'000;
    const double flops = static_cast<double>(kRounds * kernels::multiply_add_flops(isa_));
    peak_.f32 = flops / meter_.seconds([&] { sink_ += kernels::multiply_add_loop(isa_, kRounds); }) * 1e-9;
    for (const std::size_t hidden : {64U, 128U, 256U}) {
      for (const std::size_t batch : {64U, 256U}) {
        peak_.bf16 = std::max(peak_.bf16, panel_scores<Bf16>({.hidden = hidden, .batch = batch}));
        peak_.bytes = std::max(peak_.bytes, byte_scores({.hidden = hidden, .batch = batch}));
      }
    }
    if (result.memory > 0) return;
    const kernels::Triad triad{
        .a = m_.a.data(), .b = m_.b.data(), .c = m_.c.data(), .s = 0.5F, .n = m_.rows * m_.width};
    result.memory =
        12 * m_.elements() / meter_.seconds([&] { kernels::triad(kernels::best_isa(), triad); }) * 1e-9;
  }

  void measure_rows() {
    const std::size_t n = m_.width;
    float* const a = m_.a.data();
    const float* const b = m_.b.data();
    stream("add_scaled", 12, [&](std::size_t at) { k_.add_scaled(a + at, b + at, 1e-6F, n); });
    stream("scale", 8, [&](std::size_t at) { k_.scale(a + at, 0.999F, n); });
    stream("dot", 8, [&](std::size_t at) { sink_ += k_.dot(a + at, b + at, n); });
    stream("dot_bf16", 6, [&](std::size_t at) { sink_ += k_.dot_bf16(m_.bf16.data() + at, b + at, n); });
    stream("dot_bytes", 2, [&](std::size_t at) {
      sink_ +=
          static_cast<float>(k_.dot_bytes(m_.unsigned_bytes.data() + at, m_.signed_bytes.data() + at, n));
    });
    stream("squared_norm", 4, [&](std::size_t at) { sink_ += k_.squared_norm(a + at, n); });
    stream("exp_row", 8, [&](std::size_t at) {
      k_.exp_row({.scores = b + at, .bias = 0, .shift = m_.d.data(), .sums = m_.c.data(), .n = n}, a + at);
    });
    stream("exp_row_bf16", 6, [&](std::size_t at) {
      k_.exp_row_bf16({.scores = b + at, .bias = 0, .shift = m_.d.data(), .sums = m_.c.data(), .n = n},
                      m_.bf16.data() + at);
    });
    stream("adam_row", 28, [&](std::size_t at) {
      k_.adam_row({.w = a + at, .m = m_.c.data() + at, .v = m_.d.data() + at, .g = b + at, .n = n}, {});
    });
    stream("adam_blocks", 16.5, [&](std::size_t at) {
      float* const v = m_.d.data() + at / kernels::kMomentBlock;
      k_.adam_blocks({.w = a + at, .m = m_.bf16.data() + at, .v = v, .g = b + at, .n = n, .used = n}, {});
    });
    AlignedArray<float> out(n);
    add("weighted_sum", Bound::kMemory, 4 * m_.elements(), [&] {
      k_.weighted_sum({.out = out.data(),
                       .table = b,
                       .stride = n,
                       .indices = m_.order.data(),
                       .values = m_.values.data(),
                       .count = m_.rows,
                       .width = n});
    });
    std::vector<kernels::ScoreHit> hits(n);
    const AlignedArray<float> zeros(n);
    const AlignedArray<float> thresholds = filled(n, 1e30F);
    stream("select_above", 4, [&](std::size_t at) {
      sink_ += static_cast<float>(k_.select_above({.products = reinterpret_cast<const std::int32_t*>(b) + at,
                                                   .offset = 1,
                                                   .scale = 1e-9F,
                                                   .bias = 0,
                                                   .norm = 1,
                                                   .error = 1,
                                                   .scales = zeros.data(),
                                                   .norms = zeros.data(),
                                                   .errors = zeros.data(),
                                                   .thresholds = thresholds.data(),
                                                   .hits = hits.data(),
                                                   .n = n}));
    });
  }

  void measure_layouts() {
    const std::size_t n = m_.width;
    float* const a = m_.a.data();
    Bf16* const half = m_.bf16.data();
    auto* const other_half = reinterpret_cast<Bf16*>(m_.c.data());
    stream("to_bf16", 6, [&](std::size_t at) { k_.to_bf16(m_.b.data() + at, half + at, n); });
    stream("from_bf16", 6, [&](std::size_t at) { k_.from_bf16(half + at, a + at, n); });
    std::int8_t* const rounded = m_.signed_bytes.data();
    stream("to_int8", 5, [&](std::size_t at) { sink_ += k_.to_int8(m_.b.data() + at, rounded + at, n); });
    stream("from_int8", 5, [&](std::size_t at) { k_.from_int8(rounded + at, 0.01F, a + at, n); });
    stream("interleave_pairs", 8,
           [&](std::size_t at) { k_.interleave_pairs(half + at, half + at / 2, other_half + 2 * at, n); });
    const auto blocks = [&](std::string kernel, double bytes, const auto& body) {
      constexpr std::size_t kRows = 64;
      add(std::move(kernel), Bound::kMemory, bytes * m_.elements(), [&] {
        for (std::size_t row = 0; row < m_.rows; row += kRows) body(row * n, kRows);
      });
    };
    blocks("transpose", 8, [&](std::size_t at, std::size_t rows) {
      k_.transpose({.in = m_.b.data() + at,
                    .out = a + at,
                    .rows = rows,
                    .columns = n,
                    .in_stride = n,
                    .out_stride = rows});
    });
    blocks("transpose_bf16", 4, [&](std::size_t at, std::size_t rows) {
      k_.transpose_bf16({.in = half + at,
                         .out = other_half + at,
                         .rows = rows,
                         .columns = n,
                         .in_stride = n,
                         .out_stride = rows});
    });
    blocks("transpose_pairs", 4, [&](std::size_t at, std::size_t rows) {
      k_.transpose_pairs({.in = half + at,
                          .out = other_half + at,
                          .rows = rows,
                          .columns = n,
                          .in_stride = n,
                          .out_stride = 2 * rows});
    });
  }

  // With dropout, without which identity would have nothing to do.
  void measure_activations() {
    constexpr std::array<std::string_view, 3> kNames = {"relu", "identity", "tanh"};
    const std::size_t n = m_.width;
    const std::uint8_t* const kept = m_.unsigned_bytes.data();
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      stream(fmt::format("activate {}", kNames[i]), 13, [&](std::size_t at) {
        k_.activate[i](
            {.y = m_.a.data() + at, .h = m_.c.data() + at, .kept = kept + at, .scale = 1.5F, .n = n});
      });
      const double bytes =
          i == static_cast<std::size_t>(kernels::Activation::kIdentity) ? 9 : 13;  // identity needs no y
      stream(fmt::format("activate_backward {}", kNames[i]), bytes, [&](std::size_t at) {
        k_.activate_backward[i](
            {.y = m_.b.data() + at, .gradient = m_.a.data() + at, .kept = kept + at, .scale = 0.99F, .n = n});
      });
    }
  }

  // One operation for each term of a sum, or each comparison.
  void measure_codes() {
    constexpr std::size_t kCodes = 16;
    constexpr std::size_t kFunctions = 8;
    constexpr std::size_t kTerms = 16;
    constexpr double kWork = kCodes * kFunctions * kTerms * kernels::kCodeRows;
    std::vector<std::uint32_t> index(kCodes * kFunctions * kTerms);
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = static_cast<std::uint32_t>(i * 7 % m_.width);
    const std::vector<float> sign(index.size(), 1.0F);
    std::vector<std::uint32_t> out(kCodes * kernels::kCodeRows);
    std::vector<float> smallest(kernels::kCodeRows);
    add("sign_codes", Bound::kF32, kWork, [&] {
      k_.sign_codes({.columns = m_.b.data(),
                     .index = index.data(),
                     .sign = sign.data(),
                     .codes = kCodes,
                     .functions = kFunctions,
                     .terms = kTerms,
                     .out = out.data(),
                     .smallest = smallest.data()});
    });
    add("winner_codes", Bound::kF32, kWork, [&] {
      k_.winner_codes({.columns = m_.b.data(),
                       .index = index.data(),
                       .codes = kCodes,
                       .functions = kFunctions,
                       .window = kTerms,
                       .out = out.data(),
                       .smallest = smallest.data()});
    });
  }

  // The products that stand in for LIBXSMM's, on one block each.
  void measure_multiplies() {
    const std::size_t m = 64;
    const std::size_t n = 64;
    const std::size_t k = m_.width;
    const double work = 2.0 * static_cast<double>(m * n * k);
    const AlignedArray<float> a = filled(m * k, 0.5F);
    AlignedArray<float> c(m * n);
    const AlignedArray<float> b = filled(n * k, 0.25F);
    add("multiply", Bound::kF32, work, [&] {
      k_.multiply({.a = a.data(),
                   .b = b.data(),
                   .c = c.data(),
                   .m = m,
                   .n = n,
                   .k = k,
                   .lda = m,
                   .ldb = k,
                   .ldc = m});
    });
    add("multiply_bf16", Bound::kBf16, work, [&] {
      k_.multiply_bf16({.a = m_.bf16.data(),
                        .b = m_.bf16.data(),
                        .c = c.data(),
                        .m = m,
                        .n = n,
                        .k = k,
                        .lda = m,
                        .ldb = k,
                        .ldc = m});
    });
    const AlignedArray<std::int16_t> words(std::max(m, n) * k);
    AlignedArray<std::int32_t> sums(m * n);
    add("multiply_int16", Bound::kBytes, work, [&] {
      k_.multiply_int16({.a = words.data(),
                         .b = words.data(),
                         .c = sums.data(),
                         .m = m,
                         .n = n,
                         .k = k,
                         .lda = m,
                         .ldb = k,
                         .ldc = m});
    });
  }

  // Rate of the scores of a panel in the cache.
  template <class E>
  double panel_scores(const kernels::PanelShape& shape) {
    const kernels::PanelProducts<E> products(isa_, shape);
    const AlignedArray<E> panel(products.panel_size());
    const AlignedArray<E> packed(products.packed_size());
    AlignedArray<float> s(kernels::kPanelRows * shape.batch);
    return operations(shape) /
           meter_.seconds([&] { products.scores(panel.data(), packed.data(), s.data()); }) * 1e-9;
  }
  double byte_scores(const kernels::PanelShape& shape) {
    const kernels::ByteProducts products(isa_, shape);
    if (!products.generated()) return 0;
    const kernels::ByteProducts::Queries queries = products.queries();
    AlignedArray<std::int32_t> s(kernels::kPanelRows * shape.batch);
    return operations(shape) / meter_.seconds([&] {
      products.scores(m_.signed_bytes.data(), queries, nullptr, s.data());
    }) * 1e-9;
  }

  template <class E>
  void measure_panels(std::string_view element, Bound bound) {
    const kernels::PanelShape shape{.hidden = options_.hidden, .batch = options_.batch};
    const kernels::PanelProducts<E> products(isa_, shape);
    const AlignedArray<E> panel(products.panel_size());
    const AlignedArray<E> packed(products.packed_size());
    const AlignedArray<E> p(kernels::kPanelRows * shape.batch);
    AlignedArray<E> scratch(products.scratch_size());
    AlignedArray<float> s(kernels::kPanelRows * std::max(shape.batch, shape.hidden));
    AlignedArray<float> dh(shape.batch * shape.hidden);
    const double work = operations(shape);
    add(fmt::format("panel scores {}", element), bound, work,
        [&] { products.scores(panel.data(), packed.data(), s.data()); });
    add(fmt::format("panel hidden_gradient {}", element), bound, work, [&] {
      products.hidden_gradient(
          {.p = p.data(), .panel = panel.data(), .scratch = scratch.data(), .dh = dh.data()});
    });
    add(fmt::format("panel weight_gradient {}", element), bound, work,
        [&] { products.weight_gradient(p.data(), packed.data(), s.data()); });
  }

  void measure_dense() {
    const kernels::PanelShape shape{.hidden = options_.hidden, .batch = options_.batch};
    const kernels::DenseProduct dense(isa_, {.depth = shape.hidden,
                                             .columns = shape.hidden,
                                             .left_stride = shape.hidden,
                                             .out_stride = shape.hidden});
    const AlignedArray<float> packed(dense.packed_size());
    AlignedArray<float> out(shape.batch * shape.hidden);
    add("dense product", Bound::kF32, 2.0 * static_cast<double>(shape.batch * shape.hidden * shape.hidden),
        [&] { dense.multiply(m_.b.data(), packed.data(), out.data(), shape.batch); });
    const kernels::ByteProducts products(isa_, shape);
    const kernels::ByteProducts::Queries queries = products.queries();
    AlignedArray<std::int16_t> scratch(products.scratch_size());
    AlignedArray<std::int32_t> s(kernels::kPanelRows * shape.batch);
    add("byte scores", Bound::kBytes, operations(shape),
        [&] { products.scores(m_.signed_bytes.data(), queries, scratch.data(), s.data()); });
  }

  static double operations(const kernels::PanelShape& shape) {
    return 2.0 * static_cast<double>(kernels::kPanelRows * shape.hidden * shape.batch);
  }
  static AlignedArray<float> filled(std::size_t n, float value) {
    AlignedArray<float> array(n);
    std::fill_n(array.data(), n, value);
    return array;
  }

  Isa isa_;
  const Kernels& k_;
  const Meter& meter_;
  Memory& m_;
  const BenchKernels& options_;
  IsaPeak peak_{};
  std::vector<KernelSpeed> speeds_;
  float sink_ = 0;  // takes results that nobody else looks at
};

}  // namespace

BenchKernelsResult measure_kernels(const host::Clock& clock, const BenchKernels& options) {
  Memory memory(options);
  const Meter meter(clock, options);
  BenchKernelsResult result;
  for (const Isa isa : kernels::kAllIsas) {
    if (kernels::supported(isa)) IsaBench(isa, meter, memory, options).run(result);
  }
  return result;
}

}  // namespace gossamer::commands
