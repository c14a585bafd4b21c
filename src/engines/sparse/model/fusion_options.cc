// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/model/fusion_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer::sparse_engine {

float Calibration::probability(float share) const {
  // Beyond these a float's rounding would decide.
  constexpr float kLeast = 1e-7F;
  const float q = std::clamp(share, kLeast, 1 - kLeast);
  const float logit = offset + log * std::log(q) - rest * std::log1p(-q);
  return 1 / (1 + std::exp(-logit));
}

std::string describe(const FusionVector& weights) {
  std::string out;
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    out += fmt::format("{}{} {:.2f}", term > 0 ? ", " : "", kFusionTermNames[term], weights.value[term]);
  }
  return out;
}

Result<void> validate(const FusionOptions& options) {
  const auto refuse = [](std::string_view field, double got, const char* expected) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = fmt::format("fusion.{}", field),
                 .what = "a value out of its range",
                 .got = fmt::format("{}", got),
                 .expected = expected,
                 .fix = "choose a value in the range"};
  };
  for (const auto& [field, value] :
       {std::pair("candidates", options.candidates), {"neighbours", options.neighbours}}) {
    if (value < 1 || value > kMaxListed) return refuse(field, value, "1..10000");
  }
  for (const auto& [field, value] : {std::pair("input_vote_power", options.input_vote_power),
                                     {"sharp_vote_power", options.sharp_vote_power},
                                     {"hidden_vote_power", options.hidden_vote_power},
                                     {"mixed_vote_power", options.mixed_vote_power}}) {
    if (!(value >= 0 && value <= 64)) return refuse(field, static_cast<double>(value), "0..64");
  }
  for (std::size_t term = 0; term < kFusionTerms; ++term) {
    const float value = options.weights.value[term];
    if (!(std::abs(value) <= 1000))
      return refuse(fmt::format("weights.{}", kFusionTermNames[term]), static_cast<double>(value),
                    "-1000..1000");
  }
  if (const float floor = options.vote_floor; !(floor >= 1e-30F && floor <= 1)) {
    return refuse("vote_floor", static_cast<double>(floor), "1e-30..1");
  }
  return {};
}

}  // namespace gossamer::sparse_engine
