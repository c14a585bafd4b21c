// SPDX-License-Identifier: Apache-2.0
#include "host/posix/serial_thread.h"

#include <pthread.h>

#include "base/check.h"
#include "host/posix/blocked_signals.h"
#include "host/posix/clock.h"

namespace gossamer::host {

SerialThread::SerialThread(const char* name) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { work(); });
  CHECK(pthread_getcpuclockid(thread_.native_handle(), &cpu_clock_) == 0);
  CHECK(pthread_setname_np(thread_.native_handle(), name) == 0, name);
}

Duration SerialThread::cpu() const { return Duration{read_clock_ns(cpu_clock_)}; }

SerialThread::~SerialThread() {
  actions_.push({});
  thread_.join();
}

void SerialThread::work() {
  const Duration patience = from_seconds(3600);  // it only looks again
  for (;;) {
    for (const auto& action : actions_.wait(patience)) {
      if (!action) return;
      action();
    }
  }
}

}  // namespace gossamer::host
