// SPDX-License-Identifier: Apache-2.0
//
// Compute: the machine's cores and memory. One of the seams: host/posix runs workers on threads, host/sim
// runs them one after another in an order that its seed decides. Work is handed out as spans by worker
// number. Each mutable object belongs to one worker for the length of a run. So results depend on the number
// of workers, but never on timing.
//
// Thread rule: run() is called by one thread at a time, the owner; not from inside a task.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "base/time.h"

namespace gossamer::host {

class Compute {
 public:
  Compute() = default;
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;
  virtual ~Compute() = default;

  // Number of workers, >= 1, constant.
  [[nodiscard]] virtual int workers() const = 0;
  // Calls task(w) once for every w in 0..workers()-1, in parallel where there are cores, and returns when all
  // have returned. What a task wrote is visible to the caller and to the tasks of the next run. The caller is
  // worker 0. Allocates nothing.
  virtual void run(FunctionRef<void(int worker)> task) = 0;

  // User plus system time of the calling thread and of the workers so far; called by the owner.
  [[nodiscard]] virtual Duration cpu() const = 0;
  // Bytes this process may use (cgroup or machine limit).
  [[nodiscard]] virtual std::uint64_t memory_limit_bytes() const = 0;
  // The most resident memory this process has had so far.
  [[nodiscard]] virtual std::uint64_t peak_rss_bytes() const = 0;
};

// The half-open range [begin, end) of n items that belongs to `worker` of `workers`. Ranges are contiguous,
// and their sizes differ by at most one.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] constexpr std::size_t size() const { return end - begin; }
};
[[nodiscard]] constexpr Range worker_range(std::size_t n, int worker, int workers) {
  const auto w = static_cast<std::size_t>(worker);
  const auto all = static_cast<std::size_t>(workers);
  return {n * w / all, n * (w + 1) / all};
}

}  // namespace gossamer::host
