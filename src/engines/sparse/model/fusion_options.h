// SPDX-License-Identifier: Apache-2.0
//
// FusionOptions: how a model weighs the views of a query against each other, as model.json stores it. The
// terms and their formulas stand in engines/sparse/predict/fusion.h.
//
// Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::sparse_engine {

enum class FusionTerm : std::uint8_t { kNet, kCentroid, kInput, kSharp, kHidden, kMixed };
inline constexpr std::size_t kFusionTerms = 6;
inline constexpr std::array<std::string_view, kFusionTerms> kFusionTermNames = {"net",   "centroid", "input",
                                                                                "sharp", "hidden",   "mixed"};

// By FusionTerm: the terms of one candidate, or the weights of the terms.
struct FusionVector {
  std::array<float, kFusionTerms> value{};

  [[nodiscard]] constexpr float& operator[](FusionTerm term) { return value[static_cast<std::size_t>(term)]; }
  [[nodiscard]] constexpr float operator[](FusionTerm term) const {
    return value[static_cast<std::size_t>(term)];
  }
  bool operator==(const FusionVector&) const = default;
};

// Weights that did well on held-out records of several data sets.
inline constexpr FusionVector kDefaultFusionWeights{{0.3F, 2.2F, 0.2F, 0.2F, 0.15F, 0.25F}};

// "net 0.25, centroid 0.9, ...".
[[nodiscard]] std::string describe(const FusionVector& weights);

// At most so many labels from the net, or rows per cosine.
inline constexpr std::uint32_t kMaxListed = 10000;

// How likely a label is right, from its share q of the softmax over a query's candidates:
//
//   ln(p / (1 - p)) = offset + log ln(q) - rest ln(1 - q)
//
// (beta calibration: Kull, Silva Filho and Flach, AISTATS 2017). `log` and `rest` are at least 0, so the
// order of labels stays. Fitted on records that training held out (predict/calibration.h).
struct Calibration {
  float log = 1;
  float rest = 1;
  float offset = 0;

  // Requires 0 <= share <= 1. Between 0 and 1.
  [[nodiscard]] float probability(float share) const;
  bool operator==(const Calibration&) const = default;
};

struct FusionOptions {
  std::uint32_t candidates = 100;                // labels taken from the net, 1..10000
  std::uint32_t neighbours = 100;                // training rows taken per cosine, 1..10000
  FusionVector weights = kDefaultFusionWeights;  // each -1000..1000; the mixed vote is not computed for 0
  float input_vote_power = 4;                    // 0..64
  float sharp_vote_power = 8;                    // 0..64
  float hidden_vote_power = 8;                   // 0..64
  float mixed_vote_power = 8;                    // 0..64
  float vote_floor = 1e-3F;                      // > 0
  // Calibrations of all views together, and of the net alone. Nothing: the model gives no probabilities.
  std::optional<Calibration> calibration = {};
  std::optional<Calibration> net_calibration = {};

  bool operator==(const FusionOptions&) const = default;
};

// The error is kUsage, with `where` the field, for an option out of its range.
[[nodiscard]] Result<void> validate(const FusionOptions& options);

}  // namespace gossamer::sparse_engine
