// SPDX-License-Identifier: Apache-2.0
//
// The curve of a run as an SVG picture: the loss over the steps, and below it the learning rate. The loss is
// drawn as a thin line, because it is noisy, with a smoothed line over it. The picture follows the reader's
// light or dark theme. It has no scripts and no fonts of its own, so any browser shows it.
//
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gossamer::run {

struct CurvePoint {
  std::uint64_t step = 0;
  double loss = 0;
  double learning_rate = 0;
};

// `title` is plain text. With fewer than two finite points the picture says that there is nothing to draw.
[[nodiscard]] std::string curve_svg(std::span<const CurvePoint> points, std::string_view title);

}  // namespace gossamer::run
