// SPDX-License-Identifier: Apache-2.0
//
// Mailbox: brings events of other threads to the one that owns an object. Any thread pushes; the owner takes
// all that is there at once, in the order of the pushes. Thread rule: any thread calls push(), the owner
// wait().
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/time.h"

namespace gossamer::host {

template <class T>
class Mailbox {
 public:
  void push(T item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
  }

  // Everything pushed so far. Waits up to `patience` for the first item, then comes back empty. A patience of
  // zero does not wait.
  [[nodiscard]] std::vector<T> wait(Duration patience) {
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, std::chrono::nanoseconds(patience.ns), [this] { return !items_.empty(); });
    return std::exchange(items_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::vector<T> items_;  // guarded by mutex_
};

}  // namespace gossamer::host
