// SPDX-License-Identifier: Apache-2.0
//
// SilentTimes: for how long members have been silent in all, also before this lead. A member that is gone for
// good is fenced after the patience. With each new coordinator the patience would else begin anew, and the
// others would wait for ever where coordinators follow one another sooner.
//
// A row is one member's silence, in whole kStep. The time between two leads does not count: nobody could hear
// it.
//
// Thread rule: one owner.
#pragma once

#include <map>

#include "base/ids.h"
#include "base/time.h"

namespace gossamer::cluster {

class SilentTimes {
 public:
  static constexpr Duration kStep{10'000'000'000};
  // Whatever was before, each lead gives a member so much: it needs some time to find the coordinator. After
  // a silence of twice the patience it has less, as leads may be short.
  static constexpr Duration kLeastLeft{60'000'000'000};
  static constexpr Duration kLeastAtLast{10'000'000'000};
  using Rows = std::map<Incarnation, Duration>;

  explicit SilentTimes(Rows before) : before_(before), rows_(std::move(before)) {}

  // The member was heard, or is gone. True: rows() has changed.
  bool ends(Incarnation one);
  // It has been silent for so long in this lead. True: rows() has changed.
  bool lasts(Incarnation one, Duration in_this_lead);
  // What is left of the patience in this lead.
  [[nodiscard]] Duration left_of(Duration patience, Incarnation one) const;
  [[nodiscard]] const Rows& rows() const { return rows_; }

 private:
  Rows before_;
  Rows rows_;
};

}  // namespace gossamer::cluster
