// SPDX-License-Identifier: Apache-2.0
#include "exact/dense_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/rng.h"

namespace gossamer::exact {
namespace {

using kernels::Isa;

std::vector<Isa> isas_of_this_cpu() {
  std::vector<Isa> isas;
  for (const Isa isa : kernels::kAllIsas) {
    if (kernels::supported(isa)) isas.push_back(isa);
  }
  return isas;
}

// Numbers of many magnitudes and both signs, zeros and denormal numbers among them.
template <class T>
std::vector<T> many_magnitudes(std::size_t n, std::uint64_t stream) {
  Rng random(11, Purpose::kTest, stream);
  std::vector<T> numbers(n);
  for (T& x : numbers) {
    const int magnitude = static_cast<int>(random.below(24)) - 18;
    x = static_cast<T>(std::ldexp(random.normal(), magnitude * (random.below(9) == 0 ? 8 : 1)));
    if (random.below(17) == 0) x = 0;
  }
  return numbers;
}

template <class T>
struct State {
  std::vector<T> weights, first, second, gradients;

  explicit State(std::size_t n)
      : weights(many_magnitudes<T>(n, 1)),
        first(many_magnitudes<T>(n, 2)),
        second(many_magnitudes<T>(n, 3)),
        gradients(many_magnitudes<T>(n, 4)) {
    for (T& x : second) x = x * x;
  }
  bool operator==(const State&) const = default;
  [[nodiscard]] AdamWTensor<T> tensor(std::size_t from = 0) {
    return {.weights = weights.data() + from,
            .first = first.data() + from,
            .second = second.data() + from,
            .gradients = gradients.data() + from,
            .n = weights.size() - from};
  }
};

template <class T>
AdamWFactors<T> factors(int step) {
  const double bias1 = 1 - std::pow(0.9, step);
  const double bias2 = 1 - std::pow(0.999, step);
  return {.gradient_scale = static_cast<T>(1.0 / 1021),
          .weight_scale = static_cast<T>(1 - 1e-3 * 0.1),
          .beta2 = static_cast<T>(0.999),
          .one_minus_beta1 = static_cast<T>(1 - 0.9),
          .one_minus_beta2 = static_cast<T>(1 - 0.999),
          .step_size = static_cast<T>(1e-3 / bias1),
          .root_bias2 = static_cast<T>(std::sqrt(bias2)),
          .epsilon = static_cast<T>(1e-8)};
}

template <class T>
class DenseUpdateOf : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(DenseUpdateOf, Numbers);

// Claim: every instruction set gives the bits of the reference, for all small sizes and a large one, over
// several steps, with zeros and denormal numbers.
TYPED_TEST(DenseUpdateOf, AdamWHasTheSameBitsOnEveryIsa) {
  using T = TypeParam;
  std::vector<std::size_t> sizes = {4099};
  for (std::size_t n = 0; n <= 70; ++n) sizes.push_back(n);
  for (const std::size_t n : sizes) {
    State<T> right(n);
    for (int step = 1; step <= 5; ++step)
      dense_update<T>(Isa::kScalar).adamw(right.tensor(), factors<T>(step));
    for (const Isa isa : isas_of_this_cpu()) {
      State<T> state(n);
      for (int step = 1; step <= 5; ++step) dense_update<T>(isa).adamw(state.tensor(), factors<T>(step));
      EXPECT_TRUE(state == right) << kernels::name(isa) << ", n = " << n;
    }
  }
}

// Claim: a tensor that is cut anywhere gives the bits of the whole: threads may share it.
TYPED_TEST(DenseUpdateOf, AdamWInParts) {
  using T = TypeParam;
  State<T> whole(133);
  dense_update<T>(kernels::best_isa()).adamw(whole.tensor(), factors<T>(3));
  for (std::size_t cut = 1; cut < 133; ++cut) {
    State<T> parts(133);
    AdamWTensor<T> front = parts.tensor();
    front.n = cut;
    dense_update<T>(kernels::best_isa()).adamw(front, factors<T>(3));
    dense_update<T>(kernels::best_isa()).adamw(parts.tensor(cut), factors<T>(3));
    EXPECT_TRUE(parts == whole) << cut;
  }
}

// Claim: one step is the paper's algorithm 2, in 80 bits, to a few units of the last place.
TYPED_TEST(DenseUpdateOf, AdamWIsThePapers) {
  using T = TypeParam;
  using Wide = long double;
  const State<T> before(4096);
  State<T> after = before;
  const AdamWFactors<T> f = factors<T>(7);
  dense_update<T>(kernels::best_isa()).adamw(after.tensor(), f);
  const auto wide = [](T x) { return static_cast<Wide>(x); };
  const Wide unit = std::numeric_limits<T>::epsilon();
  for (std::size_t i = 0; i < before.weights.size(); ++i) {
    const Wide g = wide(f.gradient_scale) * wide(before.gradients[i]);
    const Wide first = wide(before.first[i]) + wide(f.one_minus_beta1) * (g - wide(before.first[i]));
    const Wide second = wide(f.beta2) * wide(before.second[i]) + wide(f.one_minus_beta2) * g * g;
    const Wide move = wide(f.step_size) * first / (std::sqrt(second) / wide(f.root_bias2) + wide(f.epsilon));
    const Wide kept = wide(f.weight_scale) * wide(before.weights[i]);
    const Wide parts = std::abs(wide(before.first[i])) + std::abs(g);
    const Wide least = std::numeric_limits<T>::min();
    EXPECT_LE(std::abs(wide(after.first[i]) - first), 2 * unit * parts + least);
    EXPECT_LE(std::abs(wide(after.second[i]) - second), 3 * unit * second + least);
    const Wide slack = 8 * unit * (std::abs(kept) + std::abs(move)) +
                       wide(f.step_size) * 2 * unit * parts / (std::sqrt(second) + wide(f.epsilon));
    EXPECT_LE(std::abs(wide(after.weights[i]) - (kept - move)), slack + least) << i;
  }
}

// Claim: the squared sum has the same bits on every instruction set, in the order that the header gives.
TYPED_TEST(DenseUpdateOf, SquaredSumHasTheOrderOfTheHeader) {
  using T = TypeParam;
  for (const std::size_t n : {0U, 1U, 2U, 15U, 16U, 17U, 31U, 32U, 33U, 100U, 4099U}) {
    const std::vector<T> x = many_magnitudes<T>(n, 5);
    double sums[kSumLanes] = {};
    for (std::size_t i = 0; i < n; ++i) {
      const volatile double square = static_cast<double>(x[i]) * static_cast<double>(x[i]);
      sums[i % kSumLanes] += square;
    }
    for (const std::size_t half : {8U, 4U, 2U, 1U}) {
      for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
    }
    for (const Isa isa : isas_of_this_cpu()) {
      EXPECT_EQ(dense_update<T>(isa).squared_sum(x.data(), n), sums[0])
          << kernels::name(isa) << ", n = " << n;
    }
  }
}

// Claim: what is not finite shows in the sum, wherever it stands.
TYPED_TEST(DenseUpdateOf, SquaredSumShowsWhatIsNotFinite) {
  using T = TypeParam;
  for (const Isa isa : isas_of_this_cpu()) {
    for (const std::size_t at : {0U, 15U, 16U, 36U}) {
      std::vector<T> x = many_magnitudes<T>(37, 6);
      x[at] = -std::numeric_limits<T>::infinity();
      EXPECT_EQ(dense_update<T>(isa).squared_sum(x.data(), x.size()),
                std::numeric_limits<double>::infinity());
      x[at] = std::numeric_limits<T>::quiet_NaN();
      EXPECT_TRUE(std::isnan(dense_update<T>(isa).squared_sum(x.data(), x.size())));
    }
  }
}

}  // namespace
}  // namespace gossamer::exact
