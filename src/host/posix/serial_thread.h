// SPDX-License-Identifier: Apache-2.0
//
// SerialThread: a thread that does one thing after the other, for calls that block (a store's). The
// destructor waits until every given action is done.
//
// An action must not throw. Thread rule: any thread calls give(); the owner destroys it.
#pragma once

#include <ctime>
#include <functional>
#include <thread>

#include "base/time.h"
#include "host/posix/mailbox.h"

namespace gossamer::host {

class SerialThread {
 public:
  // `name`: what `top -H` shows, at most 15 characters.
  explicit SerialThread(const char* name);
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  void give(std::function<void()> action) { actions_.push(std::move(action)); }
  // User plus system time of the thread so far. Any thread may ask.
  [[nodiscard]] Duration cpu() const;

 private:
  void work();

  Mailbox<std::function<void()>> actions_;  // an empty one ends the thread
  std::thread thread_;
  clockid_t cpu_clock_;
};

}  // namespace gossamer::host
