// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/step_order.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace gossamer::sparse_engine {

void StepOrder::restart(StepNumber first) {
  in_flight_.clear();
  next_step_ = first;
}

bool StepOrder::before(const Item& one, const Item& other) const {
  const auto place = [this](const Item& item) {
    return 2 * std::uint64_t{item.round} + item.step.value * (rounds_ - 1);
  };
  if (place(one) != place(other)) return place(one) < place(other);
  return one.step < other.step;
}

std::optional<StepOrder::Item> StepOrder::next(bool may_begin) const {
  std::optional<Item> first;
  for (const Item& item : in_flight_) {
    if (!first || before(item, *first)) first = item;
  }
  const Item begin{.step = next_step_, .round = 0};
  if (may_begin && in_flight_.size() <= staleness_ && (!first || before(begin, *first))) first = begin;
  return first;
}

void StepOrder::computed(const Item& item) {
  if (item.step == next_step_) {
    CHECK(item.round == 0, item.round);
    in_flight_.push_back({.step = item.step, .round = 1});
    ++next_step_;
    return;
  }
  const auto found = std::ranges::find(in_flight_, item);
  CHECK(found != in_flight_.end(), item.step.value, item.round);
  if (++found->round == rounds_) in_flight_.erase(found);
}

std::size_t StepOrder::rounds_left() const {
  return in_flight_.empty() ? 0 : rounds_ - in_flight_.front().round;
}

}  // namespace gossamer::sparse_engine
