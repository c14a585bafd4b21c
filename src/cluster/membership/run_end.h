// SPDX-License-Identifier: Apache-2.0
//
// RunEnd: why a run is to end, and when its members are told so. While the view changes the end waits, as
// members at rest may be a step apart. Then they have a time to save and to leave. If a member dies
// meanwhile, the others take its things over and are told again. All of that has one deadline, from the first
// time that they were told. Members could else die one after another and keep the end from coming.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <algorithm>
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
  // From when members are told first, however often they are told again. It is the time to leave, for one
  // change of the view as above, and to leave after it.
  static constexpr Duration kEndsWithin{1'860'000'000'000};
  // The last minute is for saving: members that wait for a change are told before it.
  static constexpr Duration kSaveTime{60'000'000'000};

  // The run ends because the engine cannot go on.
  void fail(Error error) { failure_ = std::move(error); }
  // The coordinator before this one has told members already.
  void told_before(Instant now) { ends_by_ = now + kEndsWithin; }
  // The run is to end with the change of the view. Members that were told before are told again.
  void wait(const std::string& reason, Instant now) {
    reason_ = reason;
    waits_until_ = now + kWaits;
    if (ends_by_) waits_until_ = std::min(*waits_until_, Instant{ends_by_->ns - kSaveTime.ns});
    leave_until_ = ends_by_;
  }
  // Members are told.
  void tell(const std::string& reason, Instant now) {
    if (!ends_by_) ends_by_ = now + kEndsWithin;
    reason_ = reason;
    waits_until_.reset();
    leave_until_ = in_time(now + kLeaveTime);
  }
  // Whether the run is to end.
  [[nodiscard]] bool is_set() const { return waits() || told(); }
  [[nodiscard]] bool waits() const { return waits_until_.has_value(); }
  // Whether members were told, also if the end waits for another change since.
  [[nodiscard]] bool told() const { return ends_by_.has_value(); }
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
  [[nodiscard]] Instant in_time(Instant when) const { return std::min(when, ends_by_.value_or(when)); }

  std::string reason_;
  std::optional<Error> failure_;
  std::optional<Instant> waits_until_;
  std::optional<Instant> leave_until_;
  std::optional<Instant> ends_by_;  // once members were told
};

}  // namespace gossamer::cluster
