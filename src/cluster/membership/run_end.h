// SPDX-License-Identifier: Apache-2.0
//
// RunEnd: why a run is to end, and when its members are told so. While the view changes the end waits, as
// members at rest may be a step apart. Then they have a time to save and to leave.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"

namespace gossamer::cluster {

class RunEnd {
 public:
  static constexpr Duration kLeaveTime{600'000'000'000};  // of members, from when they are told
  // For the end of a change, at most: silent members are spared for ten minutes.
  static constexpr Duration kWaits{660'000'000'000};

  // The run ends because the engine cannot go on.
  void fail(Error error) { failure_ = std::move(error); }
  // The run is to end with the change of the view. Members that were told before are told again.
  void wait(const std::string& reason, Instant now) {
    reason_ = reason;
    waits_until_ = now + kWaits;
    leave_until_.reset();
  }
  // Members are told.
  void tell(const std::string& reason, Instant now) {
    reason_ = reason;
    waits_until_.reset();
    leave_until_ = now + kLeaveTime;
  }
  [[nodiscard]] bool waits() const { return waits_until_.has_value(); }
  // Whether it has waited for too long.
  [[nodiscard]] bool due(Instant now) const { return waits_until_ && *waits_until_ <= now; }
  // Whether the time is over in which members leave; true once.
  [[nodiscard]] bool take_over(Instant now) {
    if (!leave_until_ || *leave_until_ > now) return false;
    leave_until_.reset();
    return true;
  }
  [[nodiscard]] std::optional<Instant> next_wakeup() const { return sooner(waits_until_, leave_until_); }

  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  std::string reason_;
  std::optional<Error> failure_;
  std::optional<Instant> waits_until_;
  std::optional<Instant> leave_until_;
};

}  // namespace gossamer::cluster
