// SPDX-License-Identifier: Apache-2.0
#include "node/cluster/event_loop.h"

#include <algorithm>

namespace gossamer::node {

void EventLoop::run(const Work& work, const std::function<bool()>& over) {
  std::optional<Instant> wake = work();
  while (!over()) {
    Duration patience = kLookEvery;
    if (wake) patience = std::clamp(*wake - now(), Duration{}, kLookEvery);
    for (Action& action : mailbox_.wait(patience)) action();
    wake = work();
  }
}

}  // namespace gossamer::node
