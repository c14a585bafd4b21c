// SPDX-License-Identifier: Apache-2.0
#include "learn/data/read/number_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <string>

#include "base/rng.h"

namespace gossamer::data {
namespace {

// Bits of the float, or nothing when the text is not wholly a finite number.
std::string read_number(const std::string& text) {
  float number = 0;
  const std::string padded = text + " ";
  const char* behind = read_float(padded.data(), padded.data() + text.size(), number);
  return behind == padded.data() + text.size() ? fmt::format("{:08x}", std::bit_cast<std::uint32_t>(number))
                                               : "none";
}

std::string reference(const std::string& text) {
  float number = 0;
  const auto [behind, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || behind != text.data() + text.size()) return "none";
  return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(number));
}

// Every decimal text rounds as the standard library's correctly rounding function does.
TEST(NumberText, FloatsAgreeWithTheStandardLibrary) {
  Rng rng(7, Purpose::kTest);
  for (int i = 0; i < 300'000; ++i) {
    const auto digits = 1 + static_cast<int>(rng.below(20));
    std::string text = rng.below(4) == 0 ? "-" : "";
    const auto point = static_cast<int>(rng.below(static_cast<std::uint64_t>(digits) + 2));
    for (int d = 0; d < digits; ++d) {
      if (d == point) text += '.';
      text += static_cast<char>('0' + rng.below(10));
    }
    if (rng.below(8) == 0) text += fmt::format("e{}", static_cast<int>(rng.below(60)) - 30);
    ASSERT_EQ(read_number(text), reference(text)) << text;
  }
}

// The middle between two floats, and one decimal step to both sides of it, round right.
TEST(NumberText, FloatsNearTheMiddleOfTwo) {
  Rng rng(8, Purpose::kTest);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t odd = (std::uint64_t{1} << 24) | rng.below(1U << 24) | 1U;  // 25 bits: a middle
    const double middle = static_cast<double>(odd) / static_cast<double>(1U << rng.below(20));
    const std::string text = fmt::format("{:.12f}", middle);
    for (const int step : {-1, 0, 1}) {
      std::string near = text;
      near.back() = static_cast<char>('0' + (near.back() - '0' + step + 10) % 10);
      ASSERT_EQ(read_number(near), reference(near)) << near;
    }
  }
}

// Too small is zero; too large, not finite and no number are refused. Digits and exponent together tell.
TEST(NumberText, FloatsOutOfRange) {
  EXPECT_EQ(read_number("1e-60"), "00000000");
  EXPECT_EQ(read_number("1e-999"), "00000000");
  EXPECT_EQ(read_number("0.00000000000000000000000000000000000000000000000000000000001"), "00000000");
  EXPECT_EQ(read_number("0.001e-50"), "00000000");
  EXPECT_EQ(read_number(".00" + std::string(60, '0') + "1e+10"), "00000000");
  EXPECT_EQ(read_number("1000e-99999999999999999999"), "00000000");
  EXPECT_EQ(read_number("1e-40"), reference("1e-40"));
  EXPECT_EQ(read_number("3.4028235e38"), reference("3.4028235e38"));
  for (const char* text : {"1e39",
                           "1e999",
                           "-1e39",
                           "nan",
                           "inf",
                           "-inf",
                           "",
                           "-",
                           ".",
                           "-.",
                           "+1",
                           "0x1",
                           "1,5",
                           "1e",
                           "--1",
                           "1000000000000000000000000000000000000000000000000",
                           "1000000000000000000000000000000000000000000000000000e-1",
                           "-1000000000000000000000000000000000000000000000000000.5E-2",
                           "0.001e42",
                           "1e+39",
                           "0.001e99999999999999999999"}) {
    EXPECT_EQ(read_number(text), "none") << text;
  }
  EXPECT_EQ(read_number("5."), read_number("5"));
  EXPECT_EQ(read_number(".5"), read_number("0.5"));
}

// Integers saturate instead of wrapping around.
TEST(NumberText, UnsignedSaturates) {
  const auto number = [](const std::string& text) {
    std::uint64_t value = 0;
    read_unsigned(text.c_str(), value);
    return value;
  };
  EXPECT_EQ(number("0"), 0U);
  EXPECT_EQ(number("0017x"), 17U);
  EXPECT_EQ(number("4294967295"), 4294967295U);
  EXPECT_EQ(number("4294967296"), 4294967296U);
  EXPECT_EQ(number("99999999999999999999999999999999999999"), 4294967296U);
}

}  // namespace
}  // namespace gossamer::data
