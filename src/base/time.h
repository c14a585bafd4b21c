// SPDX-License-Identifier: Apache-2.0
//
// Duration and Instant: integer nanoseconds. An Instant comes only from host::Clock or a test; nothing in the
// product reads a clock on its own. Thread rule: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace gossamer {

struct Duration {
  std::int64_t ns = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
  [[nodiscard]] constexpr double milliseconds() const { return static_cast<double>(ns) * 1e-6; }
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
};

[[nodiscard]] constexpr Duration from_seconds(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }
[[nodiscard]] constexpr Duration from_milliseconds(double ms) {
  return {static_cast<std::int64_t>(ms * 1e6)};
}

// Nanoseconds since an arbitrary start; only differences mean anything.
struct Instant {
  std::int64_t ns = 0;

  constexpr auto operator<=>(const Instant&) const = default;
  friend constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
  friend constexpr Instant operator+(Instant a, Duration d) { return {a.ns + d.ns}; }
};

// The sooner of two times at which something is due, of which either may be missing.
[[nodiscard]] constexpr std::optional<Instant> sooner(std::optional<Instant> a, std::optional<Instant> b) {
  return b && (!a || *b < *a) ? b : a;
}

}  // namespace gossamer
