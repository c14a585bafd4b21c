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
  events_.push({when, rng_.next_u64(), added_++, std::move(action)});
}

bool Timeline::step() {
  if (events_.empty()) return false;
  // top() is const because the order of its element must not change; moving the action out does not change
  // it.
  Action action = std::move(const_cast<Event&>(events_.top()).action);
  const Instant when = events_.top().when;
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
