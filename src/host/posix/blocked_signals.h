// SPDX-License-Identifier: Apache-2.0
//
// BlockedSignals: threads that start while this object lives receive no signals, so that a signal interrupts
// the thread that waits for it. Internal to host/posix. Thread rule: the thread that made it destroys it.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "base/check.h"

namespace gossamer::host {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before_) == 0);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { CHECK(pthread_sigmask(SIG_SETMASK, &before_, nullptr) == 0); }

 private:
  sigset_t before_{};
};

}  // namespace gossamer::host
