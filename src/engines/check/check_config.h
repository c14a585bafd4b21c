// SPDX-License-Identifier: Apache-2.0
//
// CheckConfig: what a user may say about a fleet check, `gossamer coordinator check [key=value ...]`, and how
// it gets to the members. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::engine {

struct CheckConfig {
  std::uint64_t things = 64;       // that members hold, 1..4,000
  std::uint64_t elements = 16384;  // f32 numbers that all sum in a step, 1..4,194,304
  std::uint64_t pause_ms = 0;      // between steps, 0..60,000
  std::uint64_t steps = 0;         // 0: until somebody stops the run
  bool operator==(const CheckConfig&) const = default;
};

// things * elements: a step forms so many numbers, in all members together. More would keep the loop of a
// lone member from its beats.
inline constexpr std::uint64_t kMostCheckNumbers = 1ULL << 28;

// From texts "key=value"; the last of equal keys counts. kUsage names the nearest key, or the range.
[[nodiscard]] Result<CheckConfig> parse_check_config(std::span<const std::string> settings);

// A line for each key: default, meaning, range.
[[nodiscard]] std::string check_config_help();

// As a coordinator hands it to its members. kBadData for what cannot be read, or is out of range.
[[nodiscard]] std::string check_config_bytes(const CheckConfig& config);
[[nodiscard]] Result<CheckConfig> read_check_config(std::string_view bytes);

}  // namespace gossamer::engine
