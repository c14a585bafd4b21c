// SPDX-License-Identifier: Apache-2.0
//
// A program of its own, because it replaces operator new to count allocations.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "host/posix/clock.h"
#include "hosts.h"

namespace {

// operator new belongs to the whole program, and so does its count.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::uint64_t> allocations{0};

void* counted_allocation(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// Array forms call these functions. Aligned forms are not replaced and not used here.
void* operator new(std::size_t bytes) { return counted_allocation(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace gossamer::host {
namespace {

constexpr int kRuns = 10000;

struct Case {
  HostKind host;
  int workers;
};

void PrintTo(const Case& test, std::ostream* out) { *out << name(test.host) << test.workers; }

class ComputeConformance : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] std::size_t workers() const { return static_cast<std::size_t>(GetParam().workers); }

  std::unique_ptr<Compute> compute_ = make_compute(GetParam().host, GetParam().workers);
};

// Every worker is called exactly once in each of many runs. Its writes are visible afterwards without further
// synchronisation.
TEST_P(ComputeConformance, EveryWorkerOncePerRun) {
  ASSERT_EQ(compute_->workers(), GetParam().workers);
  std::vector<int> calls(workers(), 0);  // plain: a missing hand-over is a data race
  for (int run = 1; run <= kRuns; ++run) {
    compute_->run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    for (const int count : calls) ASSERT_EQ(count, run);
  }
}

// cpu() covers the computing of the owner and all workers, and here nobody else computes. In a simulation
// nothing takes time.
TEST_P(ComputeConformance, CpuIsThatOfAllWorkers) {
  const Duration before = compute_->cpu();
  if (GetParam().host == HostKind::kSim) {
    EXPECT_EQ(before, Duration{});
    return;
  }
  const PosixClock clock;
  const Duration process_before = clock.process_cpu();
  compute_->run([&](int) {
    while (clock.process_cpu() - process_before < from_milliseconds(20)) {
    }
  });
  const Duration process = clock.process_cpu() - process_before;
  // A sanitizer has a thread of its own, which needs some microseconds. A worker here needs milliseconds.
  EXPECT_GE(compute_->cpu() - before + from_milliseconds(1), process);
}

// A run sees the writes of all workers in the run before, and the caller's writes in between.
TEST_P(ComputeConformance, EffectsReachTheNextRun) {
  std::vector<std::uint64_t> value(workers(), 1);
  std::vector<std::uint64_t> next(workers(), 0);
  std::vector<std::uint64_t> expected(workers(), 1);
  std::uint64_t added = 0;
  for (int run = 0; run < kRuns; ++run) {
    ++added;
    compute_->run([&](int worker) {
      const auto w = static_cast<std::size_t>(worker);
      next[w] = std::accumulate(value.begin(), value.end(), added + w);
    });
    value.swap(next);
    const std::uint64_t sum = std::accumulate(expected.begin(), expected.end(), added);
    std::iota(expected.begin(), expected.end(), sum);
    ASSERT_EQ(value, expected) << "run " << run;
  }
}

// The caller is worker 0.
TEST_P(ComputeConformance, CallerIsWorkerZero) {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::thread::id> threads(workers());
  compute_->run([&](int worker) { threads[static_cast<std::size_t>(worker)] = std::this_thread::get_id(); });
  EXPECT_EQ(threads[0], caller);
}

// run() allocates nothing, from the first run on.
TEST_P(ComputeConformance, RunDoesNotAllocate) {
  std::vector<std::uint64_t> sums(workers(), 0);
  const std::uint64_t before = allocations;
  for (std::uint64_t run = 0; run < 1000; ++run) {
    compute_->run([&](int worker) { sums[static_cast<std::size_t>(worker)] += run; });
  }
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(sums, std::vector<std::uint64_t>(workers(), 999 * 1000 / 2));
  const std::uint64_t counted = allocations;
  sums.push_back(0);
  EXPECT_GT(allocations, counted) << "the counter does not count";
}

// Pools can be made and left again, with and without work; two may live side by side.
TEST_P(ComputeConformance, ManyPools) {
  for (int i = 0; i < 50; ++i) {
    const auto other = make_compute(GetParam().host, GetParam().workers);
    std::vector<int> calls(workers(), 0);
    if (i % 2 == 0) other->run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    compute_->run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    EXPECT_EQ(calls, std::vector<int>(workers(), i % 2 == 0 ? 2 : 1));
  }
}

// The limits are sane: some memory may be used, and no more was used than the limit allows.
TEST_P(ComputeConformance, MemoryLimits) {
  EXPECT_GT(compute_->memory_limit_bytes(), std::uint64_t{1} << 20);
  EXPECT_GT(compute_->peak_rss_bytes(), 0U);
  EXPECT_LE(compute_->peak_rss_bytes(), compute_->memory_limit_bytes());
}

INSTANTIATE_TEST_SUITE_P(Hosts, ComputeConformance,
                         ::testing::Values(Case{HostKind::kPosix, 1}, Case{HostKind::kPosix, 2},
                                           Case{HostKind::kPosix, 5}, Case{HostKind::kSim, 1},
                                           Case{HostKind::kSim, 2}, Case{HostKind::kSim, 5}),
                         ::testing::PrintToStringParamName());

// The ranges of all workers cover n items without gap or overlap. Sizes differ by at most one.
TEST(WorkerRange, CoversEverythingEvenly) {
  for (std::size_t n = 0; n < 40; ++n) {
    for (int workers = 1; workers < 12; ++workers) {
      std::size_t end = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const Range range = worker_range(n, worker, workers);
        EXPECT_EQ(range.begin, end);
        EXPECT_GE(range.end - range.begin, n / static_cast<std::size_t>(workers));
        EXPECT_LE(range.end - range.begin, n / static_cast<std::size_t>(workers) + 1);
        end = range.end;
      }
      EXPECT_EQ(end, n);
    }
  }
}

}  // namespace
}  // namespace gossamer::host
