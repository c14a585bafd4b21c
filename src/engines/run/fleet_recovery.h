// SPDX-License-Identifier: Apache-2.0
//
// FleetRecovery: what a change of the view that lost or moved something has cost a member. It has the one
// description of its fields, from which reports, events and summaries are made.
//
// Thread rule: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/counters.h"
#include "base/ids.h"
#include "base/time.h"

namespace gossamer::engine {

struct FleetRecovery {
  Epoch epoch;        // of the layout that it ended with
  StepNumber step;    // the first after it
  std::string cause;  // for people: "node 3 was lost, node 5 joined"
  Duration total;     // from the last step before to the first after, less a median step
  // Parts of the total. The rest is the time by which the first step differs from a median one.
  Duration detect;  // nothing goes on any more, until the view begins to change
  Duration agree;   // members come to rest, and the coordinator decides
  Duration load;    // logs, copies and pieces come from other members
  Duration replay;  // lost pieces are computed anew
  std::uint64_t steps_replayed = 0;

  // Calls v(name, field) for each field that summaries have: all but the epoch.
  static constexpr std::size_t kDescribed = 8;
  template <class Recovery, class Visitor>
  static void describe(Recovery& recovery, Visitor&& v) {
    v("cause", recovery.cause);
    v("step", recovery.step);
    v("seconds", recovery.total);
    v("detect_seconds", recovery.detect);
    v("agree_seconds", recovery.agree);
    v("load_seconds", recovery.load);
    v("replay_seconds", recovery.replay);
    v("steps_replayed", recovery.steps_replayed);
  }
};

using RecoveryFields = std::array<EventField, FleetRecovery::kDescribed>;
// The described fields by name, times in seconds.
[[nodiscard]] RecoveryFields fields_of(const FleetRecovery& recovery);

}  // namespace gossamer::engine
