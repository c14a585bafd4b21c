// SPDX-License-Identifier: Apache-2.0
//
// PosixClock: the machine's clocks. now() is CLOCK_MONOTONIC, process_cpu() CLOCK_PROCESS_CPUTIME_ID,
// wall_seconds() CLOCK_REALTIME. No state, no errors. Thread rule: any thread.
#pragma once

#include <time.h>

#include <cstdint>

#include "host/api/clock.h"

namespace gossamer::host {

// The time of any of the kernel's clocks.
[[nodiscard]] std::int64_t read_clock_ns(clockid_t id);

class PosixClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] Duration process_cpu() const override;
  [[nodiscard]] double wall_seconds() const override;
};

}  // namespace gossamer::host
