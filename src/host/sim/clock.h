// SPDX-License-Identifier: Apache-2.0
//
// SimClock: virtual time. It starts at zero (wall time at a fixed date) and moves only when the owner says
// so, never backwards. Thread rule: any thread may read; one thread, the owner, moves it.
#pragma once

#include <atomic>

#include "base/check.h"
#include "host/api/clock.h"

namespace gossamer::host {

class SimClock final : public Clock {
 public:
  // 2024-01-01 00:00:00 UTC.
  static constexpr double kWallStart = 1704067200.0;

  [[nodiscard]] Instant now() const override { return {now_ns_.load()}; }
  [[nodiscard]] Duration process_cpu() const override { return {cpu_ns_.load()}; }
  [[nodiscard]] double wall_seconds() const override {
    return kWallStart + Duration{now_ns_.load()}.seconds();
  }

  // Time passes, on both clocks. Requires elapsed >= 0.
  void advance(Duration elapsed) {
    CHECK(elapsed.ns >= 0, elapsed.ns);
    now_ns_ += elapsed.ns;
  }
  // The process has computed, on any number of cores; does not move now(). Requires used >= 0.
  void use_cpu(Duration used) {
    CHECK(used.ns >= 0, used.ns);
    cpu_ns_ += used.ns;
  }

 private:
  std::atomic<std::int64_t> now_ns_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
};

}  // namespace gossamer::host
