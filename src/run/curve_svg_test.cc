// SPDX-License-Identifier: Apache-2.0
#include "run/curve_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
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

// The points of the line of this class, as they lie in the picture: y grows downwards.
std::vector<std::pair<double, double>> line_of(const std::string& svg, const std::string& style) {
  const std::string begin = "<polyline class=\"" + style + "\" points=\"";
  std::size_t at = svg.find(begin);
  if (at == std::string::npos) return {};
  at += begin.size();
  std::vector<std::pair<double, double>> points;
  while (svg[at] != '"') {
    std::size_t used = 0;
    const double x = std::stod(svg.substr(at, 16), &used);
    at += used + 1;
    points.emplace_back(x, std::stod(svg.substr(at, 16), &used));
    at += used + 1;
  }
  return points;
}

// Claim: a loss and a rate that fall run down to the right, over all of the plot, however many points there
// are. The last point is there.
TEST(CurveSvg, WhatFallsRunsDown) {
  for (const std::size_t n : {80U, 1'000'000U}) {
    std::vector<CurvePoint> points = falling(n);
    points.back().loss = 0;
    const std::string svg = curve_svg(points, "run");
    for (const std::string style : {"raw", "loss", "rate"}) {
      const auto line = line_of(svg, style);
      ASSERT_GE(line.size(), 80U) << style;
      EXPECT_TRUE(std::ranges::is_sorted(line, {}, &std::pair<double, double>::first)) << style;
      EXPECT_TRUE(std::ranges::is_sorted(line, {}, &std::pair<double, double>::second)) << style;
      EXPECT_LT(line.front().first, 90) << style;
      EXPECT_NEAR(line.back().first, 832, 0.1) << style;
      EXPECT_GT(line.back().second - line.front().second, 50) << style;
    }
    const auto raw = line_of(svg, "raw");
    EXPECT_GT(raw.back().second - raw[raw.size() - 2].second, 20) << n;
  }
}

// Claim: the smoothed line shows little of what goes up and down from point to point, and does not lag
// behind.
TEST(CurveSvg, TheSmoothedLine) {
  std::vector<CurvePoint> noisy;
  std::vector<CurvePoint> straight;
  for (std::uint64_t i = 0; i < 400; ++i) {
    noisy.push_back({.step = i, .loss = i % 2 == 0 ? 3.0 : 5.0, .learning_rate = 0.01});
    straight.push_back({.step = i, .loss = 8 - 0.01 * static_cast<double>(i), .learning_rate = 0.01});
  }
  const std::string svg = curve_svg(noisy, "run");
  const auto range = [&svg](const std::string& style) {
    const auto line = line_of(svg, style);
    const auto [low, high] =
        std::ranges::minmax(std::span(line).subspan(50, 300), {}, &std::pair<double, double>::second);
    return high.second - low.second;
  };
  EXPECT_GT(range("raw"), 100);
  EXPECT_LT(range("loss"), range("raw") / 5);
  const std::string falls = curve_svg(straight, "run");
  const auto raw = line_of(falls, "raw");
  const auto smooth = line_of(falls, "loss");
  ASSERT_EQ(raw.size(), 400U);
  ASSERT_EQ(smooth.size(), 400U);
  for (std::size_t i = 0; i < raw.size(); ++i) EXPECT_NEAR(smooth[i].second, raw[i].second, 0.2) << i;
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
