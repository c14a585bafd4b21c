// SPDX-License-Identifier: Apache-2.0
#include "host/posix/clock.h"

#include "base/check.h"

namespace gossamer::host {

std::int64_t read_clock_ns(clockid_t id) {
  timespec t{};
  CHECK(clock_gettime(id, &t) == 0, id);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

Instant PosixClock::now() const { return {read_clock_ns(CLOCK_MONOTONIC)}; }

Duration PosixClock::process_cpu() const { return {read_clock_ns(CLOCK_PROCESS_CPUTIME_ID)}; }

double PosixClock::wall_seconds() const { return static_cast<double>(read_clock_ns(CLOCK_REALTIME)) * 1e-9; }

}  // namespace gossamer::host
