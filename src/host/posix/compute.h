// SPDX-License-Identifier: Apache-2.0
//
// PosixCompute: a pool of threads made once. A training step starts several short runs one after the other.
// So between two runs a worker first watches for work for some tens of microseconds, then sleeps in the
// kernel. When there are more workers than usable cores, it sleeps at once. Signals are left to the thread
// that made the pool.
//
// A task must not throw: that ends the process. Owner: the thread that calls run(); it also destroys the
// pool. Thread rule: as for Compute.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"
#include "host/api/compute.h"

namespace gossamer::host {

class PosixCompute final : public Compute {
 public:
  // Starts workers-1 threads. Requires workers >= 1. kFailed when the machine gives no more threads.
  [[nodiscard]] static Result<std::unique_ptr<PosixCompute>> create(int workers);
  ~PosixCompute() override;

  [[nodiscard]] int workers() const override { return workers_; }
  void run(FunctionRef<void(int worker)> task) override;
  [[nodiscard]] Duration cpu() const override;
  [[nodiscard]] std::uint64_t memory_limit_bytes() const override;
  [[nodiscard]] std::uint64_t peak_rss_bytes() const override;

 private:
  PosixCompute(int workers, int spins);
  [[nodiscard]] Result<void> start_threads();
  void work(int worker);
  void begin_round();

  const int workers_;
  const int spins_;  // looks at an atomic before sleeping on it
  // The task of the round in progress. The owner writes it before it raises round_; workers read it after
  // they saw that.
  const FunctionRef<void(int worker)>* task_ = nullptr;  // null: end the thread
  // Each on a cache line of its own: all workers watch the first, only the owner the second.
  alignas(64) std::atomic<std::uint32_t> round_{0};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
  std::vector<std::thread> threads_;
  std::vector<clockid_t> cpu_clocks_;  // the CPU clocks of threads_
};

}  // namespace gossamer::host
