// SPDX-License-Identifier: Apache-2.0
//
// StepOrder: in which order a member computes the rounds of its steps (fleet_learner.h). Without staleness
// one step comes after the other. With staleness 1 two steps are in flight, half a step apart. So a member
// computes one while it waits for the others' gifts for the other:
//
//   rounds of step t     0 . 1 . 2 . 3
//   rounds of step t+1         0 . 1 . 2 . 3
//   rounds of step t+2               0 . 1 . 2 . 3
//
// Round j of step t has the place
//
//   2 j + t (rounds - 1)
//
// If two rounds have the same place, the earlier step goes first. So step t + 2 begins right after step t has
// been applied, and before step t + 1 is. It reads weights that lack one step. All members keep to this
// order, whatever arrives when. So they read the same in every run.
//
// Thread rule: one owner. Pure: no time, no messages.
#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <optional>

#include "base/ids.h"

namespace gossamer::sparse_engine {

class StepOrder {
 public:
  struct Item {
    StepNumber step;
    std::size_t round = 0;
    auto operator<=>(const Item&) const = default;
  };

  // Requires rounds >= 2 and staleness <= 1.
  StepOrder(std::size_t rounds, std::size_t staleness) : rounds_(rounds), staleness_(staleness) {}

  // No step is in flight any more. `first` begins next.
  void restart(StepNumber first);

  // The round to be computed next. Nothing if no step is in flight and none may begin. `may_begin`: whether
  // next_step() may begin if it is its turn.
  [[nodiscard]] std::optional<Item> next(bool may_begin) const;
  // The item has been computed. Requires that it was next.
  void computed(const Item& item);

  [[nodiscard]] bool idle() const { return in_flight_.empty(); }
  // The next round of the oldest step in flight; nothing: no step is in flight.
  [[nodiscard]] std::optional<Item> oldest() const {
    return idle() ? std::nullopt : std::optional(in_flight_.front());
  }
  // The first step that has not begun.
  [[nodiscard]] StepNumber next_step() const { return next_step_; }
  // The number of rounds of the oldest step in flight that are not computed; 0 if no step is in flight.
  [[nodiscard]] std::size_t rounds_left() const;

 private:
  [[nodiscard]] bool before(const Item& one, const Item& other) const;

  std::size_t rounds_;
  std::size_t staleness_;
  std::deque<Item> in_flight_;  // the next round of each step in flight, oldest first
  StepNumber next_step_;
};

}  // namespace gossamer::sparse_engine
