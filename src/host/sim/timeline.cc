// SPDX-License-Identifier: Apache-2.0
#include "host/sim/timeline.h"

#include <tuple>
#include <utility>

#include "base/check.h"

namespace gossamer::host {

bool Timeline::Later::operator()(const Event& a, const Event& b) const {
  return std::tie(a.when, a.order, a.number) > std::tie(b.when, b.order, b.number);
}

void Timeline::at(Instant when, Action action) {
  CHECK(when >= now(), when.ns, now().ns);
  std::size_t slot = actions_.size();
  if (free_slots_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    actions_[slot] = std::move(action);
  }
  events_.push({when, rng_.next_u64(), added_++, slot});
}

bool Timeline::step() {
  if (events_.empty()) return false;
  const auto [when, order, number, slot] = events_.top();
  const Action action = std::move(actions_[slot]);
  free_slots_.push_back(slot);
  events_.pop();
  clock_.advance(when - now());
  ++run_;
  action();
  return true;
}

void Timeline::run_until(Instant end) {
  while (!events_.empty() && events_.top().when <= end) step();
  if (end > now()) clock_.advance(end - now());
}

}  // namespace gossamer::host
