// SPDX-License-Identifier: Apache-2.0
//
// RestClock: which members had their time for coming to rest, and did not? They may lose their lives, so a
// member's time counts only while nothing but its engine can be what others wait for:
// - It begins when the request has left. A decision waits for the store, perhaps for minutes.
// - It begins anew when the member's link does, and when the member first says that it knows the request.
// - It begins anew with each sign of work: the CPU time of the engine's work has grown.
// - It begins anew when a silent member is heard again, and when a member that was heard falls silent.
// - A silence counts only where others hear the member, and it alone fell silent. In any other case doubts.h
//   says whether it is dead.
//
// A member could stretch its time for ever by such words. So it is late kMostTimes times the time after the
// request, if it has not worked. `patience` after the request it is given up, whatever it says. Both limits
// begin anew when a silence ends that took longer than the time, kMostTurns times. A request in the place of
// another, because a member has died, begins no limit of those that still owe rest.
// In a run of long steps an engine that works has the time of kMostSteps of them. A node that was late when
// it lost its life has half of these in its next life, and so on, down to the time. So it cannot hold the
// others for long again and again.
//
// Cost: a beat costs one look-up; late() is linear, and due once a second. Thread rule: one owner.
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
  static constexpr double kMostSteps = 3;
  static constexpr Duration kLongest{3'600'000'000'000};  // of the time of these steps
  static constexpr int kMostTurns = 3;                    // long silences of a member that give it time
  static constexpr Duration kLookAgain{1'000'000'000};

  // `time`: how long an engine without a sign of life may take.
  RestClock(Duration time, Duration patience) : time_(time), patience_(patience) {}

  // Members are to come to rest for another request, which has not left yet. `owing`: those that have not
  // come to rest for the one before. Their limits go on once this one has left.
  void begin(const std::set<NodeId>& owing, Instant now);
  void left(Instant now);
  // All rest, or none needs to any more.
  void end();

  // The member's link is new.
  void came(NodeId node, Instant now);
  // A sign of life of the member. `knows`: the request. `work_ms`: CPU time that its engine has worked in its
  // life so far.
  void beat(NodeId node, bool knows, std::uint64_t work_ms, Instant now);
  // The node has lost its life.
  void gone(NodeId node);

  // So long the run's steps take, by the word of most members; 0: not known.
  void steps_take(double seconds);

  // What this process hears of its members.
  struct Hearing {
    std::function<bool(NodeId)> hears;
    // A member that is not heard: others hear it, and it alone fell silent.
    std::function<bool(NodeId)> missed_alone = {};  // empty: all are
  };
  struct Late {
    std::set<NodeId> nodes = {};     // they had their time
    std::set<NodeId> given_up = {};  // of them, those that are heard, and had all of their time
  };
  // Looks at the members that do not rest yet. Names none before next_look().
  [[nodiscard]] Late late(const std::set<NodeId>& awaited, const Hearing& hearing, Instant now);
  // When late() may name a member.
  [[nodiscard]] std::optional<Instant> next_look() const { return look_; }

 private:
  struct Member {
    Instant since;                       // its time counts from here
    std::optional<Instant> limits = {};  // so do its limits; nothing: from when the request left
    std::optional<Instant> silent_since = {};
    int turns = 0;  // long silences that have ended
    bool knows = false;
    bool worked = false;
    bool late = false;
    std::uint64_t work_ms = 0;
  };
  void turn(Member& member, bool silent, Instant now) const;
  // The most time of a member, whatever it says.
  [[nodiscard]] Duration most_of(const Member& member) const;
  [[nodiscard]] Instant late_from(NodeId node, const Member& member) const;
  // What is left to the node of so much.
  [[nodiscard]] Duration left_of(Duration most, NodeId node) const;

  const Duration time_;
  const Duration patience_;
  Duration steps_;
  bool open_ = false;             // members are to come to rest
  Instant begun_;                 // since then no request that counts is out
  std::optional<Instant> asked_;  // since then they can know
  std::optional<Instant> look_;
  std::map<NodeId, Member> members_;
  std::map<NodeId, unsigned> late_lives_;  // lives that ended late
};

}  // namespace gossamer::cluster
