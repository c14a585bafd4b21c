// SPDX-License-Identifier: Apache-2.0
//
// WorkThread does an engine's Work (cluster/control/engine.h) on a thread of its own, one piece after the
// other. When a piece is done it tells the engine on the loop. The destructor waits for the piece under way,
// and the engine does not hear of that any more.
//
// Thread rule: one owner, the loop thread. Loop and engine outlive it, and the loop runs no further after it.
#pragma once

#include <utility>

#include "base/time.h"
#include "cluster/control/engine.h"
#include "host/posix/serial_thread.h"
#include "node/event_loop.h"

namespace gossamer::node {

class WorkThread {
 public:
  WorkThread(EventLoop& loop, cluster::Engine& engine) : loop_(loop), engine_(engine) {}
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // Begins the work that the engine wants done, if any. To be called after the engine's other calls.
  void take() {
    cluster::Engine::Work work = engine_.take_work();
    if (!work) return;
    // The work lets go of what it holds before the engine hears of it, so that
    // the engine may be the last owner.
    thread_.give([this, work = std::move(work)]() mutable {
      work();
      work = {};
      loop_.post({}, [this] { engine_.worked(loop_.now()); });
    });
  }
  // CPU time that the work has taken so far.
  [[nodiscard]] Duration cpu() const { return thread_.cpu(); }

 private:
  EventLoop& loop_;
  cluster::Engine& engine_;
  host::SerialThread thread_{"work"};  // declared last: ends first
};

}  // namespace gossamer::node
