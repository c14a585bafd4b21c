// SPDX-License-Identifier: Apache-2.0
#include "node/event_loop.h"

#include <algorithm>
#include <vector>

namespace gossamer::node {

void EventLoop::run(const Work& work, const std::function<bool()>& over) {
  std::optional<Instant> wake = work();
  while (!over()) {
    Duration patience = kLookEvery;
    if (wake) patience = std::clamp(*wake - now(), Duration{}, kLookEvery);
    std::vector<Posted> batch = mailbox_.wait(patience);
    if (host::kReadyOrder == host::ReadyOrder::kDrawn)
      batch = host::in_drawn_order(std::move(batch), rng_, [](const Posted& one) { return one.source; });
    for (Posted& one : batch) one.action();
    wake = work();
  }
}

}  // namespace gossamer::node
