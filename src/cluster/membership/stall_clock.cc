// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/stall_clock.h"

#include <algorithm>
#include <utility>

namespace gossamer::cluster {

void StallClock::begin(Instant now) {
  since_ = now;
  look_ = expects_ ? std::optional(now + time_) : std::nullopt;
  ++times_;
}

void StallClock::expects(bool step, Instant now) {
  if (std::exchange(expects_, step) != step) begin(now);
}

void StallClock::stepped(Instant now) {
  time_ = kStalled;
  begin(now);
}

void StallClock::beat(NodeId node, const Done& done, Instant now) {
  Member& member = members_[node];
  const bool is_first = std::exchange(member.times, times_) != times_;
  // A link that is new counts its bytes anew.
  if (is_first || done.bytes < member.then.bytes) member.then.bytes = done.bytes;
  if (is_first || done.work_ms < member.then.work_ms) member.then.work_ms = done.work_ms;
  const double times = std::max(1.0, (now - since_).seconds() / kStalled.seconds());
  const auto work_ms = static_cast<double>(done.work_ms - member.then.work_ms);
  const auto bytes = static_cast<double>(done.bytes - member.then.bytes);
  if (work_ms >= times * kLeastWorkMs || bytes >= times * kLeastBytes) begin(now);
}

bool StallClock::is_due(double step_seconds, Instant now) {
  if (!look_ || *look_ > now) return false;
  const Duration steps = from_seconds(std::min(3 * step_seconds, kLongest.seconds()));
  look_ = since_ + std::max(time_, steps);
  return *look_ <= now;
}

void StallClock::asked(Instant now) {
  time_ = std::min(Duration{2 * time_.ns}, kLongest);
  begin(now);
}

}  // namespace gossamer::cluster
