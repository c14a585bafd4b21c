// SPDX-License-Identifier: Apache-2.0
//
// Clock: the only source of time. One of the seams (docs/ARCHITECTURE.md): host/posix reads the
// machine's clocks, host/sim keeps virtual time that moves only when told to.
//
// Thread rule: any thread.
#pragma once

#include "base/time.h"

namespace gossamer::host {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Monotonic, unaffected by changes of the wall clock.
  [[nodiscard]] virtual Instant now() const = 0;
  // User plus system time of this process so far.
  [[nodiscard]] virtual Duration process_cpu() const = 0;
  // Seconds since 1970-01-01 UTC, for log lines, file names and dates of expiry only; may jump.
  [[nodiscard]] virtual double wall_seconds() const = 0;
};

}  // namespace gossamer::host
