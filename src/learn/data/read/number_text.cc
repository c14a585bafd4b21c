// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/number_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>

namespace gossamer::data {
namespace {

constexpr std::array<double, 20> kPowerOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                                1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }

// The number behind "e"; one that no text of digits makes up for, where it does not fit.
std::int64_t exponent_of(std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto [behind, status] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (status == std::errc::result_out_of_range) return text.starts_with('-') ? -kMost : kMost;
  return std::clamp(exponent, -kMost, kMost);
}

// Whether a number that is out of range for its type is too small rather than too large: the power of ten of
// its first digit that is not 0 tells.
bool is_tiny(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), e));
  const std::int64_t power = first < point ? point - first - 1 : point - first;
  return power + (e < number.size() ? exponent_of(number.substr(e + 1)) : 0) < 0;
}

const char* read_float_slowly(const char* at, const char* end, float& number) {
  const auto [behind, status] = std::from_chars(at, end, number);
  if (status == std::errc::result_out_of_range) {
    if (!is_tiny({at, behind})) return nullptr;
    number = 0;
    return behind;
  }
  if (status != std::errc() || !std::isfinite(number)) return nullptr;
  return behind;
}

}  // namespace

const char* read_float(const char* at, const char* end, float& number) {
  // Takes the digits as one integer m, then m / 10^k in double. m below 10^19 converts with a relative error
  // of at most 2^-53 and the division adds as much. So the double is less than 4 units in the last place off.
  // Rounding it to float is right unless it lies that close to the middle of two floats: then the slow way
  // decides.
  const char* p = at + (*at == '-' ? 1 : 0);
  std::uint64_t m = 0;
  const char* digits = p;
  for (; is_digit(*p); ++p) m = m * 10 + static_cast<std::uint64_t>(*p - '0');
  auto count = p - digits;
  std::ptrdiff_t fraction = 0;
  if (*p == '.') {
    const char* point = p++;
    for (; is_digit(*p); ++p) m = m * 10 + static_cast<std::uint64_t>(*p - '0');
    fraction = p - point - 1;
    count += fraction;
  }
  if (count == 0 || count > 19 || *p == 'e' || *p == 'E') return read_float_slowly(at, end, number);
  double wide = static_cast<double>(m) / kPowerOfTen[static_cast<std::size_t>(fraction)];
  if (m != 0) {
    constexpr std::uint64_t kDropped = (std::uint64_t{1} << 29) - 1;  // mantissa bits that a float has not
    constexpr std::uint64_t kMiddle = std::uint64_t{1} << 28;
    const std::uint64_t off = (std::bit_cast<std::uint64_t>(wide) & kDropped) - (kMiddle - 4);
    if (off <= 8 || wide < std::numeric_limits<float>::min()) return read_float_slowly(at, end, number);
  }
  if (*at == '-') wide = -wide;
  number = static_cast<float>(wide);
  return p;
}

}  // namespace gossamer::data
