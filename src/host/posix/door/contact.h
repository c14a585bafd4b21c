// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection to an endpoint, by a thread that blocks. Thread rule: any thread.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "host/api/endpoint.h"
#include "host/posix/clock.h"
#include "host/system/addresses.h"
#include "host/system/descriptor.h"

namespace gossamer::host {

// The end of a wait: a time, or a sign of another thread.
class Deadline {
 public:
  // `sign`: a descriptor that becomes readable when all is over; -1 without one.
  explicit Deadline(Duration timeout, int sign = -1) : end_(clock_.now() + timeout), sign_(sign) {}
  // A deadline after the n-th part of the time that is left.
  [[nodiscard]] Deadline share(int n) const;
  // Waits until the socket is ready for `events` of poll(); false when time is up or the sign came.
  [[nodiscard]] bool wait(int fd, short events) const;

 private:
  PosixClock clock_;
  Instant end_;
  int sign_;
};

// Tries one address after the other. The error is kFailed at the endpoint: "cannot connect".
[[nodiscard]] Result<Descriptor> connect_to(const Endpoint& to, const Addresses& addresses,
                                            const Deadline& deadline);

}  // namespace gossamer::host
