// SPDX-License-Identifier: Apache-2.0
//
// Choices: values that a structured target draws from a fuzzer's bytes. Messages that are half right get
// further than bytes do. Thread rule: one owner.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <limits>
#include <string>

namespace gossamer::fuzz {

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : input_(data, size) {}

  [[nodiscard]] bool left() { return input_.remaining_bytes() != 0; }
  [[nodiscard]] std::size_t below(std::size_t end) {
    return input_.ConsumeIntegralInRange<std::size_t>(0, end - 1);
  }
  [[nodiscard]] bool flip() { return input_.ConsumeBool(); }
  // Mostly small, so that numbers coincide; sometimes at the ends of the range, or anything.
  [[nodiscard]] std::uint64_t number() {
    switch (below(8)) {
      case 0: return input_.ConsumeIntegral<std::uint64_t>();
      case 1: return std::numeric_limits<std::uint64_t>::max() - below(3);
      default: return below(16);
    }
  }
  // May be negative, infinite, or NaN.
  [[nodiscard]] double real() {
    switch (below(4)) {
      case 0: return input_.ConsumeFloatingPoint<double>();
      case 1: return std::numeric_limits<double>::denorm_min() * static_cast<double>(below(4));
      case 2: return std::numeric_limits<double>::max() / static_cast<double>(1 + below(4));
      default: return static_cast<double>(below(100));
    }
  }
  [[nodiscard]] std::string text(std::size_t most = 64) { return input_.ConsumeRandomLengthString(most); }
  [[nodiscard]] std::string rest() { return input_.ConsumeRemainingBytesAsString(); }

 private:
  FuzzedDataProvider input_;
};

}  // namespace gossamer::fuzz
