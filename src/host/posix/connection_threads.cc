// SPDX-License-Identifier: Apache-2.0
#include "host/posix/connection_threads.h"

#include <system_error>
#include <utility>

#include "host/posix/blocked_signals.h"

namespace gossamer::host {

void ConnectionThreads::enqueue(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  if (idle_ == 0 && threads_.size() < most_) {
    const BlockedSignals blocked;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there do the work, or the accepting one itself.
      if (threads_.empty()) return task();
    }
  }
  next_ = std::move(task);
  changed_.notify_all();
  // The next connection is accepted once somebody has begun with this one.
  changed_.wait(lock, [this] { return !next_.has_value(); });
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return next_.has_value() || ended_; });
    --idle_;
    if (!next_.has_value()) return;
    const std::function<void()> task = *std::exchange(next_, std::nullopt);
    changed_.notify_all();
    lock.unlock();
    task();
    lock.lock();
  }
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace gossamer::host
