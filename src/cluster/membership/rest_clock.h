// SPDX-License-Identifier: Apache-2.0
//
// RestClock: which members had their time for coming to rest, and did not? A member that is named here loses
// its life. So its time counts only while nothing but its engine can be what others wait for:
// - It begins when the request has left. A decision waits for the store, perhaps for minutes.
// - It begins anew when the member's link does, and when the member first says that it knows the request.
// - It begins anew with each sign of work: the CPU time of the engine's work has grown.
// - It does not count while the member is silent: that is for others to judge (doubts.h).
//
// A member could stretch its time for ever by such words. So there are two limits, both counted from the
// request or from the member's last silence: kMostTimes times the time itself, or `patience` for a member
// that works. `patience` holds as well where no member rests: nobody could go on without the late ones.
//
// Cost: a beat costs one look-up; late() is linear, and due once in the time. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class RestClock {
 public:
  static constexpr int kMostTimes = 4;

  // `time`: how long an engine without a sign of life may take.
  RestClock(Duration time, Duration patience) : time_(time), patience_(patience) {}

  // Members are to come to rest for another request, which has not left yet.
  void begin();
  void left(Instant now);
  // All rest, or none needs to any more.
  void end();

  // The member's link is new.
  void came(NodeId node, Instant now);
  // A sign of life of the member. `knows`: the request. `work_ms`: CPU time that its engine has worked in its
  // life so far.
  void beat(NodeId node, bool knows, std::uint64_t work_ms, Instant now);
  // The node has lost its life.
  void gone(NodeId node) { members_.erase(node); }

  // Of the members that do not rest yet, those that are late. `some_rest`: at least one other member rests.
  [[nodiscard]] std::set<NodeId> late(const std::set<NodeId>& awaited, bool some_rest,
                                      const std::function<bool(NodeId)>& heard, Instant now);
  // When late() may name a member.
  [[nodiscard]] std::optional<Instant> next_look() const { return look_; }

 private:
  struct Member {
    Instant since;        // its time counts from here
    Instant limit_since;  // its limits count from here
    bool knows = false;
    bool worked = false;
    std::uint64_t work_ms = 0;
  };

  // Until when the member is not late.
  [[nodiscard]] Instant until(const Member& member, bool some_rest) const;

  const Duration time_;
  const Duration patience_;
  std::optional<Instant> asked_;
  std::optional<Instant> look_;
  std::map<NodeId, Member> members_;
};

}  // namespace gossamer::cluster
