// SPDX-License-Identifier: Apache-2.0
//
// Decimal text to numbers, as the readers need it: fast for what files hold, exact for everything. Private to
// learn/data. Thread rule: pure functions.
#pragma once

#include <cstdint>

namespace gossamer::data {

// Reads decimal digits from `at`, which must be followed somewhere by a byte that is no digit. Returns the
// first byte behind them (`at` itself without any digit). Numbers of 2^32 and more are returned as 2^32.
inline const char* read_unsigned(const char* at, std::uint64_t& number) {
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 32;
  std::uint64_t sum = 0;
  for (; static_cast<unsigned char>(*at - '0') <= 9; ++at) {
    sum = sum * 10 + static_cast<std::uint64_t>(*at - '0');
    if (sum > kTooLarge) sum = kTooLarge;
  }
  number = sum;
  return at;
}

// Reads a decimal number ("-1.5", ".5", "1e-3") from the front of [at, end) and rounds it to the nearest
// float (ties to even, once). *end must be readable and part of no number. Returns the first byte behind the
// number, or nullptr if there is none, or if it is not finite as a float. Numbers that are too small become
// zero.
const char* read_float(const char* at, const char* end, float& number);

}  // namespace gossamer::data
