// SPDX-License-Identifier: Apache-2.0
#include "host/posix/compute.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <system_error>

#include "base/check.h"
#include "host/posix/blocked_signals.h"
#include "host/posix/cgroup.h"
#include "host/posix/clock.h"
#include "host/posix/disk.h"
#include "host/posix/environment.h"

namespace gossamer::host {
namespace {

// About 20 microseconds at 40 cycles a pause.
constexpr int kSpins = 2000;

// Returns once `value` is no longer `old`.
void await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    __builtin_ia32_pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

PosixCompute::PosixCompute(int workers, int spins) : workers_(workers), spins_(spins) {}

Result<std::unique_ptr<PosixCompute>> PosixCompute::create(int workers) {
  CHECK(workers >= 1, workers);
  const int spins = workers > usable_cores() ? 0 : kSpins;
  std::unique_ptr<PosixCompute> compute(new PosixCompute(workers, spins));
  if (auto started = compute->start_threads(); !started.ok()) return started.error();
  return compute;
}

Result<void> PosixCompute::start_threads() {
  threads_.reserve(static_cast<std::size_t>(workers_ - 1));
  const BlockedSignals blocked;
  try {
    for (int worker = 1; worker < workers_; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
      CHECK(pthread_getcpuclockid(threads_.back().native_handle(), &cpu_clocks_.emplace_back()) == 0);
    }
  } catch (const std::system_error& error) {
    return Error{.kind = ErrorKind::kFailed,
                 .what = fmt::format("cannot start a thread: {}", error.code().message()),
                 .got = fmt::format("{} of {} workers", threads_.size() + 1, workers_),
                 .fix = "use fewer workers or raise the limit of processes (ulimit -u)"};
  }
  return {};
}

PosixCompute::~PosixCompute() {
  task_ = nullptr;
  begin_round();
  for (std::thread& thread : threads_) thread.join();
}

void PosixCompute::begin_round() {
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void PosixCompute::run(FunctionRef<void(int worker)> task) {
  CHECK(task_ == nullptr);  // not from inside a task
  task_ = &task;
  unfinished_.store(static_cast<std::uint32_t>(workers_ - 1), std::memory_order_relaxed);
  if (workers_ > 1) begin_round();
  task(0);
  for (;;) {
    const std::uint32_t unfinished = unfinished_.load(std::memory_order_acquire);
    if (unfinished == 0) break;
    await_change(unfinished_, unfinished, spins_);
  }
  task_ = nullptr;
}

void PosixCompute::work(int worker) {
  // Rounds begin only when all threads have finished the last one, so none can be missed.
  for (std::uint32_t seen = 0;; ++seen) {
    await_change(round_, seen, spins_);
    if (task_ == nullptr) return;
    (*task_)(worker);
    // Only the last one wakes the owner.
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

Duration PosixCompute::cpu() const {
  std::int64_t ns = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (const clockid_t clock : cpu_clocks_) ns += read_clock_ns(clock);
  return {ns};
}

std::uint64_t PosixCompute::memory_limit_bytes() const {
  PosixDisk disk;
  return usable_memory_bytes(disk, "");
}

std::uint64_t PosixCompute::peak_rss_bytes() const {
  rusage usage{};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace gossamer::host
