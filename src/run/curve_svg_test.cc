// SPDX-License-Identifier: Apache-2.0
#include "run/curve_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gossamer::run {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<CurvePoint> falling(std::size_t n) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < n; ++i) {
    const auto t = static_cast<double>(i) / static_cast<double>(n);
    points.push_back(
        {.step = 10 * (i + 1), .loss = 2 + 6 * std::exp(-5 * t), .learning_rate = 0.01 * (1 - t)});
  }
  return points;
}

// All coordinates of all lines of the picture lie inside it.
TEST(CurveSvg, StaysInsideThePicture) {
  for (const std::size_t n : {2U, 3U, 80U, 5000U}) {
    const std::string svg = curve_svg(falling(n), "run");
    std::size_t at = 0;
    int curves = 0;
    while ((at = svg.find("points=\"", at)) != std::string::npos) {
      at += 8;
      ++curves;
      while (svg[at] != '"') {
        std::size_t used = 0;
        const double x = std::stod(svg.substr(at, 16), &used);
        at += used + 1;
        const double y = std::stod(svg.substr(at, 16), &used);
        at += used + 1;
        EXPECT_TRUE(x >= 0 && x <= 860 && y >= 0 && y <= 470) << x << "," << y << " of " << n;
      }
    }
    EXPECT_EQ(curves, 3);
  }
}

// A long run gives a small picture. The file does not grow with the number of steps.
TEST(CurveSvg, LongRunsStaySmall) { EXPECT_LT(curve_svg(falling(1'000'000), "run").size(), 200'000U); }

// Nothing, one point, equal points and numbers that are not finite still make a valid picture without NaN.
TEST(CurveSvg, TakesOddInput) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<CurvePoint>> sets = {
      {},
      {{.step = 1, .loss = 2, .learning_rate = 0.1}},
      {{.step = 1, .loss = 2, .learning_rate = 0}, {.step = 2, .loss = 2, .learning_rate = 0}},
      {{.step = 0, .loss = 0, .learning_rate = 0}, {.step = 0, .loss = 0, .learning_rate = 0}},
      {{.step = 1, .loss = nan, .learning_rate = 1}, {.step = 2, .loss = nan, .learning_rate = 1}},
  };
  for (const auto& points : sets) {
    const std::string svg = curve_svg(points, "run");
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

// A title cannot end its element.
TEST(CurveSvg, EscapesTheTitle) {
  const std::string svg = curve_svg(falling(3), "a</title><script>&");
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("a&lt;/title&gt;&lt;script&gt;&amp;"));
}

}  // namespace
}  // namespace gossamer::run
