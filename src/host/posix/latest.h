// SPDX-License-Identifier: Apache-2.0
//
// Latest: a value that its owner replaces from time to time and other threads copy. Thread rule: set() the
// owner, get() any thread.
#pragma once

#include <mutex>
#include <utility>

namespace gossamer::host {

template <class T>
class Latest {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
  }
  [[nodiscard]] T get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  T value_;  // guarded by mutex_
};

}  // namespace gossamer::host
