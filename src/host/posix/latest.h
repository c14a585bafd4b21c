// SPDX-License-Identifier: Apache-2.0
//
// Latest: a value that its owner replaces from time to time and other threads read. Thread rule: the owner
// calls set(), any thread get().
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace gossamer::host {

template <class T>
class Latest {
 public:
  void set(T value) {
    auto made = std::make_shared<const T>(std::move(value));
    const std::lock_guard lock(mutex_);
    value_ = std::move(made);
  }
  // Null before the first set().
  [[nodiscard]] std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;  // guarded by mutex_
};

}  // namespace gossamer::host
