// SPDX-License-Identifier: Apache-2.0
//
// AsideThread does what takes long for the loop, on a thread of its own, one piece after the other: hashing,
// large writes. Then it calls the loop. The destructor waits for the piece under way and drops the others,
// and the loop does not hear of them any more.
//
// Thread rule: one owner, the loop thread. The loop outlives it, and runs no further after it.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "base/time.h"
#include "host/posix/serial_thread.h"
#include "node/event_loop.h"

namespace gossamer::node {

class AsideThread {
 public:
  explicit AsideThread(EventLoop& loop) : loop_(loop) {}
  ~AsideThread() { end(); }
  AsideThread(const AsideThread&) = delete;
  AsideThread& operator=(const AsideThread&) = delete;

  // An `Aside` (files/file_exchange.h). `work` lets go of what it holds before `then` is called.
  void give(std::function<void()> work, std::function<void(Instant)> then) {
    thread_.give([this, work = std::move(work), then = std::move(then)]() mutable {
      if (ends_) return;
      work();
      work = {};
      loop_.post({}, [this, then = std::move(then)] { then(loop_.now()); });
    });
  }

  // Drops what has not begun, from now on too.
  void end() { ends_ = true; }

 private:
  EventLoop& loop_;
  std::atomic<bool> ends_ = false;
  host::SerialThread thread_{"aside"};  // declared last: ends first
};

}  // namespace gossamer::node
