// SPDX-License-Identifier: Apache-2.0
//
// PosixSignals: turns SIGINT, SIGTERM and SIGHUP into a flag. The owner of a run reads it between two steps,
// so that it can write a checkpoint and stop. A second SIGINT restores the default action: from then on a
// further Ctrl-C ends the process at once. (Not the second one itself: `timeout` and some shells deliver the
// first one twice.) A terminal that is closed sends SIGHUP; where nohup has told the process to ignore it, it
// does. Blocking system calls are restarted, not interrupted.
//
// Signals belong to the process, so the flag does too: at most one PosixSignals may live at a time (CHECK).
// It forgets older signals when made and restores the former handlers when destroyed.
// Owner: the thread that starts the run. Thread rule: any thread may ask the two questions.
#pragma once

#include <signal.h>

namespace gossamer::host {

class PosixSignals {
 public:
  PosixSignals();
  PosixSignals(const PosixSignals&) = delete;
  PosixSignals& operator=(const PosixSignals&) = delete;
  ~PosixSignals();

  [[nodiscard]] bool stop_requested() const { return signal_number() != 0; }
  // SIGINT, SIGTERM or SIGHUP, the first that came; 0 for none. The exit status of a stopped run is 128 plus
  // this.
  [[nodiscard]] int signal_number() const;

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
  struct sigaction old_hang_up_{};
};

}  // namespace gossamer::host
