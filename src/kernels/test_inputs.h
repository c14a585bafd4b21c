// SPDX-License-Identifier: Apache-2.0
//
// Inputs for the tests of kernels, and the fixture of tests that run once for each instruction set. Only
// tests include it. Thread rule: plain values.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/aligned_array.h"
#include "base/rng.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace gossamer::kernels {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline double wide(float x) { return static_cast<double>(x); }

// Normal numbers, other ones for each stream.
struct RandomInputs {
  std::uint64_t seed;

  [[nodiscard]] Rng rng(std::uint64_t stream = 0) const { return {seed, Purpose::kTest, stream}; }
  [[nodiscard]] std::vector<float> row(std::size_t n, std::uint64_t stream, float deviation = 1) const {
    Rng random = rng(stream);
    std::vector<float> numbers(n);
    for (float& x : numbers) x = deviation * random.normal();
    return numbers;
  }
  [[nodiscard]] AlignedArray<float> matrix(std::size_t size, std::uint64_t stream = 0) const {
    Rng random = rng(stream);
    AlignedArray<float> numbers(size);
    for (float& x : numbers.span()) x = random.normal();
    return numbers;
  }
};

// Skips the instruction sets that this CPU lacks.
class OnIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!supported(GetParam())) GTEST_SKIP() << "this CPU has no " << name(GetParam());
  }
  [[nodiscard]] const Kernels& kernels() const { return kernels_for(GetParam()); }
};

// The instruction set as the end of a test's name, without a hyphen.
inline std::string isa_word(const testing::TestParamInfo<Isa>& test) {
  std::string text(name(test.param));
  std::erase(text, '-');
  return text;
}

}  // namespace gossamer::kernels
