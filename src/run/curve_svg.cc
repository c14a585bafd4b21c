// SPDX-License-Identifier: Apache-2.0
#include "run/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gossamer::run {
namespace {

// One plot: where it lies in the picture, and which numbers its edges stand for.
struct Panel {
  double left;
  double top;
  double width;
  double height;
  double x_max;  // x starts at 0
  double y_min;
  double y_max;

  [[nodiscard]] double x(double value) const { return left + width * value / x_max; }
  [[nodiscard]] double y(double value) const {
    return top + height * (1 - (value - y_min) / (y_max - y_min));
  }
};

constexpr double kWidth = 860;
constexpr double kHeight = 470;
constexpr double kLeft = 76;
constexpr double kPlotWidth = kWidth - kLeft - 28;

constexpr std::string_view kStyle = R"(<style>
  .back { fill: #ffffff; } .grid { stroke: #d9dee5; stroke-width: 1; } .axis { stroke: #5b6673; stroke-width: 1; }
  text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; fill: #333c47; }
  .title { font-size: 16px; font-weight: 600; } .raw { fill: none; stroke: #8fb7e8; stroke-width: 1; }
  .loss { fill: none; stroke: #1c5fb0; stroke-width: 2.2; } .rate { fill: none; stroke: #b1540f; stroke-width: 2.2; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #14181d; } .grid { stroke: #2c343d; } .axis { stroke: #93a0ae; } text { fill: #dbe2ea; }
    .raw { stroke: #3a5f8f; } .loss { stroke: #79b4ff; } .rate { stroke: #f0a35e; }
  }
</style>
)";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// The step 1, 2 or 5 times a power of ten that cuts `range` into about `parts` pieces.
double nice_step(double range, int parts) {
  const double rough = range / parts;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

std::string tick_text(double value) {
  if (value >= 10'000 && std::fmod(value, 1000) == 0) return fmt::format("{:.0f}k", value / 1000);
  return fmt::format("{:.6g}", value);
}

void draw_frame(std::string& svg, const Panel& p, std::string_view label, bool x_ticks) {
  const double y_step = nice_step(p.y_max - p.y_min, p.height > 150 ? 8 : 3);
  // Ticks are counted, not added up, so that 0.3 is not 0.30000000000000004.
  for (double k = std::ceil(p.y_min / y_step - 1e-9); k * y_step <= p.y_max + y_step * 1e-6; k += 1) {
    const double y = p.y(k * y_step);
    svg += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                       p.left, p.left + p.width, y, y);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", p.left - 8, y + 4.5,
                       tick_text(std::abs(k) < 0.5 ? 0 : k * y_step));
  }
  const double x_step = std::max(1.0, nice_step(p.x_max, 8));
  for (double k = 0; k * x_step <= p.x_max * (1 + 1e-9); k += 1) {
    const double x = p.x(k * x_step);
    svg += fmt::format("<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x,
                       x, p.top + p.height, p.top + p.height + 5);
    if (!x_ticks) continue;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                       p.top + p.height + 21, tick_text(k * x_step));
  }
  svg += fmt::format("<path class=\"axis\" fill=\"none\" d=\"M{:.1f},{:.1f}V{:.1f}H{:.1f}\"/>\n", p.left,
                     p.top, p.top + p.height, p.left + p.width);
  const double middle = p.top + p.height / 2;
  svg += fmt::format(
      "<text x=\"18\" y=\"{:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1f})\">{}</text>\n",
      middle, middle, label);
}

void draw_line(std::string& svg, const Panel& p, std::string_view style, std::span<const CurvePoint> points,
               std::span<const double> values) {
  svg += fmt::format("<polyline class=\"{}\" points=\"", style);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double value = std::clamp(values[i], p.y_min, p.y_max);
    svg += fmt::format("{:.1f},{:.1f} ", p.x(static_cast<double>(points[i].step)), p.y(value));
  }
  svg += "\"/>\n";
}

// Mean over a centred window of about a fortieth of the run, so that the line does not lag behind the data.
std::vector<double> smooth(std::span<const double> values) {
  const std::size_t half = values.size() / 80;
  std::vector<double> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t reach = std::min({half, i, values.size() - 1 - i});
    double sum = 0;
    for (std::size_t k = i - reach; k <= i + reach; ++k) sum += values[k];
    out[i] = sum / static_cast<double>(2 * reach + 1);
  }
  return out;
}

// At most about `limit` points, so that the picture of a long run stays small.
std::vector<CurvePoint> thin(std::span<const CurvePoint> points, std::size_t limit) {
  std::vector<CurvePoint> kept;
  const std::size_t every = points.size() / limit + 1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool finite = std::isfinite(points[i].loss) && std::isfinite(points[i].learning_rate);
    if (finite && (i % every == 0 || i + 1 == points.size())) kept.push_back(points[i]);
  }
  return kept;
}

void draw_plots(std::string& svg, std::span<const CurvePoint> points) {
  std::vector<double> loss;
  std::vector<double> rate;
  for (const CurvePoint& point : points) {
    loss.push_back(point.loss);
    rate.push_back(point.learning_rate);
  }
  const auto [low, high] = std::ranges::minmax(loss);
  const double step = nice_step(std::max(high - low, std::abs(high) * 1e-3 + 1e-9), 6);
  const double floor = std::floor(low / step) * step;
  const double last = std::max(1.0, static_cast<double>(points.back().step));
  const double top_rate = std::max(std::ranges::max(rate), 1e-12);
  const Panel loss_panel = {.left = kLeft,
                            .top = 48,
                            .width = kPlotWidth,
                            .height = 260,
                            .x_max = last,
                            .y_min = floor,
                            .y_max = std::max(std::ceil(high / step) * step, floor + step)};
  const Panel rate_panel = {.left = kLeft,
                            .top = 330,
                            .width = kPlotWidth,
                            .height = 80,
                            .x_max = last,
                            .y_min = 0,
                            .y_max = top_rate * 1.08};
  draw_frame(svg, loss_panel, "loss (nats)", false);
  draw_line(svg, loss_panel, "raw", points, loss);
  draw_line(svg, loss_panel, "loss", points, smooth(loss));
  draw_frame(svg, rate_panel, "learning rate", true);
  draw_line(svg, rate_panel, "rate", points, rate);
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">step</text>\n",
                     kLeft + kPlotWidth / 2, kHeight - 14);
}

}  // namespace

std::string curve_svg(std::span<const CurvePoint> points, std::string_view title) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      kWidth, kHeight, escape(title));
  svg += kStyle;
  svg += fmt::format("<rect class=\"back\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", kWidth, kHeight);
  svg += fmt::format("<text class=\"title\" x=\"{:.1f}\" y=\"28\">{}</text>\n", kLeft, escape(title));
  const std::vector<CurvePoint> kept = thin(points, 1500);
  if (kept.size() < 2) {
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">fewer than two steps</text>\n",
                       kWidth / 2, kHeight / 2);
  } else {
    draw_plots(svg, kept);
  }
  return svg + "</svg>\n";
}

}  // namespace gossamer::run
