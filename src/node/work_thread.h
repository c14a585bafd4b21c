// SPDX-License-Identifier: Apache-2.0
//
// WorkThread does an engine's Work (cluster/control/engine.h) on threads of its own: one for each queue, one
// piece after the other. When a piece is done it tells the engine on the loop. The destructor waits for the
// pieces under way, and the engine does not hear of those any more.
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
    give(main_, engine_.take_work(), &cluster::Engine::worked);
    give(side_, engine_.take_side_work(), &cluster::Engine::side_worked);
  }
  // CPU time that the work of both queues has taken so far.
  [[nodiscard]] Duration cpu() const { return main_.cpu() + side_.cpu(); }

 private:
  void give(host::SerialThread& thread, cluster::Engine::Work work, void (cluster::Engine::*done)(Instant)) {
    if (!work) return;
    // The work lets go of what it holds before the engine hears of it, so that
    // the engine may be the last owner.
    thread.give([this, done, work = std::move(work)]() mutable {
      work();
      work = {};
      loop_.post({}, [this, done] { (engine_.*done)(loop_.now()); });
    });
  }

  EventLoop& loop_;
  cluster::Engine& engine_;
  // Declared last: they end first.
  host::SerialThread main_{"work"};
  host::SerialThread side_{"side-work"};
};

}  // namespace gossamer::node
