// SPDX-License-Identifier: Apache-2.0
#include "exact/exact_math.h"

#include <array>
#include <bit>
#include <cstddef>

namespace gossamer::exact {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;
constexpr double kLn2 = 0.69314718055994530941723212145818;
constexpr double kRootHalf = 0.70710678118654752440084436210485;
constexpr int kExponentBias = 1023;

// Both series of Taylor at |x| <= pi/4: the first term left out is below 1e-17.
double cosine_series(double x) {
  const double square = x * x;
  double sum = 1;
  for (int k = 16; k >= 2; k -= 2) sum = 1 - sum * square / (static_cast<double>(k) * (k - 1));
  return sum;
}
double sine_series(double x) {
  const double square = x * x;
  double sum = 1;
  for (int k = 17; k >= 3; k -= 2) sum = 1 - sum * square / (static_cast<double>(k) * (k - 1));
  return x * sum;
}

// A part of a turn, and in which of the eight octants it lies.
struct Octant {
  int number;   // 0..7
  double part;  // of the turn, from the octant's start, in [0, 1/8]
};
Octant octant_of(double turns) {
  // Both differences and products by a power of two are exact.
  const double rest = turns - static_cast<double>(static_cast<std::int64_t>(turns));
  const int number = static_cast<int>(rest * 8) % 8;
  return {.number = number, .part = rest - static_cast<double>(number) / 8};
}

}  // namespace

double cosine(double turns) {
  const auto [number, part] = octant_of(turns < 0 ? -turns : turns);
  const double near = kTwoPi * part;
  const double far = kTwoPi * (0.125 - part);
  switch (number) {
    case 0: return cosine_series(near);
    case 1: return sine_series(far);
    case 2: return -sine_series(near);
    case 3: return -cosine_series(far);
    case 4: return -cosine_series(near);
    case 5: return -sine_series(far);
    case 6: return sine_series(near);
    default: return cosine_series(far);
  }
}

double sine(double turns) {
  const auto [number, part] = octant_of(turns < 0 ? -turns : turns);
  const double near = kTwoPi * part;
  const double far = kTwoPi * (0.125 - part);
  const std::array values = {sine_series(near),    cosine_series(far), cosine_series(near),
                             sine_series(far),     -sine_series(near), -cosine_series(far),
                             -cosine_series(near), -sine_series(far)};
  const double value = values[static_cast<std::size_t>(number)];
  return turns < 0 ? -value : value;
}

// x = 2^e m with sqrt(1/2) <= m < sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)) as its series.
double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - kExponentBias + 1;
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  double part = std::bit_cast<double>((bits & kFraction) | (std::uint64_t{kExponentBias - 1} << 52));
  if (part < kRootHalf) {  // part is in [1/2, 1)
    part *= 2;
    --exponent;
  }
  const double s = (part - 1) / (part + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return static_cast<double>(exponent) * kLn2 + 2 * (s + s * sum);
}

// x = k ln 2 + r with |r| <= ln 2 / 2, and e^r as Taylor's series: the first term left out is below 1e-17.
double exponential(double x) {
  constexpr double kLeast = -708;
  if (x < kLeast) return 0;
  // ln 2 in two parts. The first has its last 32 bits zero, so its products with k are exact.
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const auto k = static_cast<std::int64_t>(x / kLn2 + (x < 0 ? -0.5 : 0.5));
  const auto halvings = static_cast<double>(k);
  const double rest = (x - halvings * kLn2High) - halvings * kLn2Low;
  double sum = 1;
  for (int i = 14; i >= 1; --i) sum = 1 + sum * rest / static_cast<double>(i);
  // k is in -1021..1023, so 2^k is a normal number.
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + kExponentBias) << 52);
}

double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace gossamer::exact
