// SPDX-License-Identifier: Apache-2.0
//
// CheckConfig: the settings of a fleet check, `gossamer coordinator check [key=value ...]`, and their way to
// the members. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "settings/key_table.h"

namespace gossamer::check {

struct CheckConfig {
  std::uint64_t things = 64;       // held by members, 1..4,000
  std::uint64_t elements = 16384;  // f32 numbers that all sum in a step, 1..4,194,304
  std::uint64_t pause_ms = 0;      // between steps, 0..60,000
  std::uint64_t steps = 0;         // 0: until the run is stopped
  bool operator==(const CheckConfig&) const = default;
};

// The most things * elements: the numbers that all members together form in a step. With more, a lone
// member's loop would not get to its beats.
inline constexpr std::uint64_t kMostCheckNumbers = 1ULL << 28;

[[nodiscard]] const settings::KeyTable<CheckConfig>& check_keys();

// kUsage for more numbers than kMostCheckNumbers.
[[nodiscard]] Result<void> validate(const CheckConfig& config);

// The configuration as bytes from the coordinator to its members. Reading gives kBadData for unreadable bytes
// and values out of range.
[[nodiscard]] std::string check_config_bytes(const CheckConfig& config);
[[nodiscard]] Result<CheckConfig> read_check_config(std::string_view bytes);

}  // namespace gossamer::check
