// SPDX-License-Identifier: Apache-2.0
#include "host/posix/signals.h"

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace gossamer::host {
namespace {

// A handler gets no argument of its own, so what it writes must be global; PosixSignals is its one owner.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> first_signal{0};
std::atomic<int> interrupts{0};
std::atomic<bool> installed{false};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int number) {
  const int saved_errno = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
  if (number == SIGINT && interrupts.fetch_add(1) == 1) {
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    static_cast<void>(sigaction(SIGINT, &standard, nullptr));  // nothing to do about a failure here
  }
  errno = saved_errno;
}

}  // namespace

PosixSignals::PosixSignals() {
  CHECK(!installed.exchange(true));
  first_signal = 0;
  interrupts = 0;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  CHECK(sigaction(SIGINT, &action, &old_interrupt_) == 0);
  CHECK(sigaction(SIGTERM, &action, &old_terminate_) == 0);
  CHECK(sigaction(SIGHUP, nullptr, &old_hang_up_) == 0);
  if (old_hang_up_.sa_handler != SIG_IGN) CHECK(sigaction(SIGHUP, &action, nullptr) == 0);
}

PosixSignals::~PosixSignals() {
  CHECK(sigaction(SIGINT, &old_interrupt_, nullptr) == 0);
  CHECK(sigaction(SIGTERM, &old_terminate_, nullptr) == 0);
  CHECK(sigaction(SIGHUP, &old_hang_up_, nullptr) == 0);
  installed = false;
}

int PosixSignals::signal_number() const { return first_signal.load(); }

}  // namespace gossamer::host
