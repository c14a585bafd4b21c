// SPDX-License-Identifier: Apache-2.0
//
// The hash codes of every table that this CPU runs, against one vector at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/kernels.h"
#include "kernels/test_inputs.h"

namespace gossamer::kernels {
namespace {

constexpr RandomInputs kCodeInputs{.seed = 4712};

class CodesOnIsa : public OnIsa {};

// Random lists of coordinates for codes, and vectors with ties and zeros among them.
struct CodeCase {
  explicit CodeCase(std::size_t terms) {
    Rng rng = kCodeInputs.rng(terms);
    for (float& x : columns) x = rng.normal();
    for (std::size_t i = 0; i < kCodes * kFunctions * terms; ++i) {
      index.push_back(static_cast<std::uint32_t>(rng.below(kDimension)));
      sign.push_back(rng.below(2) == 0 ? 1.0F : -1.0F);
    }
    for (std::size_t i = 0; i < columns.size(); i += 3) columns[i] = static_cast<float>(rng.below(3)) - 1.0F;
  }
  static constexpr std::size_t kDimension = 37;
  static constexpr std::size_t kCodes = 5;
  static constexpr std::size_t kFunctions = 3;
  std::vector<float> columns = std::vector<float>(kDimension * kCodeRows);
  std::vector<std::uint32_t> index;
  std::vector<float> sign;
  std::vector<std::uint32_t> code = std::vector<std::uint32_t>(kCodes * kCodeRows, 99);
  std::vector<float> smallest = std::vector<float>(kCodeRows, -1);
};

// Every bit of a sign code is the sign of its sum, bit by bit the same as adding up in list order. The least
// magnitude is the least of these sums.
TEST_P(CodesOnIsa, SignCodesAreSignsOfSums) {
  for (const std::size_t terms : {std::size_t{1}, std::size_t{2}, std::size_t{13}, std::size_t{43}}) {
    CodeCase c(terms);
    kernels().sign_codes({c.columns.data(), c.index.data(), c.sign.data(), CodeCase::kCodes,
                          CodeCase::kFunctions, terms, c.code.data(), c.smallest.data()});
    for (std::size_t r = 0; r < kCodeRows; ++r) {
      float smallest = kInfinity;
      std::vector<std::uint32_t> want(CodeCase::kCodes);
      for (std::size_t f = 0; f < CodeCase::kCodes * CodeCase::kFunctions; ++f) {
        float sum = 0;
        for (std::size_t t = f * terms; t < (f + 1) * terms; ++t) {
          const float x = c.columns[c.index[t] * kCodeRows + r];
          sum = c.sign[t] > 0 ? sum + x : sum - x;
        }
        want[f / CodeCase::kFunctions] += sum >= 0 ? 1U << (f % CodeCase::kFunctions) : 0U;
        smallest = std::min(smallest, std::abs(sum));
      }
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(c.code[i * kCodeRows + r], want[i]) << terms;
      EXPECT_EQ(c.smallest[r], smallest) << terms;
    }
  }
}

// Every place of a winner code is the position of the first largest coordinate of its window. The least lead
// is the one that sorting the windows gives.
TEST_P(CodesOnIsa, WinnerCodesAreFirstLargest) {
  for (const std::size_t window : {std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{16}}) {
    CodeCase c(window);
    kernels().winner_codes({c.columns.data(), c.index.data(), CodeCase::kCodes, CodeCase::kFunctions, window,
                            c.code.data(), c.smallest.data()});
    for (std::size_t r = 0; r < kCodeRows; ++r) {
      float smallest = kInfinity;
      std::vector<std::size_t> want(CodeCase::kCodes);
      for (std::size_t f = CodeCase::kCodes * CodeCase::kFunctions; f-- > 0;) {
        std::vector<float> x(window);
        for (std::size_t t = 0; t < window; ++t) x[t] = c.columns[c.index[f * window + t] * kCodeRows + r];
        std::size_t& code = want[f / CodeCase::kFunctions];
        code = code * window + static_cast<std::size_t>(std::ranges::max_element(x) - x.begin());
        std::ranges::sort(x, std::greater<>());
        smallest = std::min(smallest, x[0] - x[1]);
      }
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(c.code[i * kCodeRows + r], want[i]) << window;
      EXPECT_EQ(c.smallest[r], smallest) << window;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CodesOnIsa, testing::ValuesIn(kAllIsas), isa_word);

}  // namespace
}  // namespace gossamer::kernels
