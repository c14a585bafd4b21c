// SPDX-License-Identifier: Apache-2.0
//
// bench kernels measures how fast each kernel runs on each instruction set of this CPU, on one core. Beside
// each speed stands what the core can do, measured in the same run:
//
//   f32          multiply-adds on registers
//   bf16, bytes  the best product of several shapes
//   memory       STREAM's triad
//
// A kernel that does little for each number it reads streams through arrays larger than the caches, and its
// bytes are counted. Products and hash codes work on panels in the cache, and their operations are counted.
// Times are CPU times, the least of five, because other work on the machine can only add to them.
//
// A kernel that works in place can be faster than the triad. The triad's output is read into the cache before
// it is written, and STREAM does not count that.
//
// Thread rule: the thread that owns the Compute; one core works.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/isa.h"
#include "run/node_host.h"
#include "settings/key_table.h"

namespace gossamer::commands {

struct BenchKernels {
  std::uint64_t hidden = 128;       // row width: a multiple of 32
  std::uint64_t batch = 256;        // samples of a panel product: a multiple of 32
  std::uint64_t megabytes = 64;     // size of each array that is streamed through
  std::uint64_t milliseconds = 10;  // least time of one measurement; the best of five counts
};

[[nodiscard]] const settings::KeyTable<BenchKernels>& bench_kernels_keys();

// What limits a kernel.
enum class Bound { kMemory, kF32, kBf16, kBytes };

struct IsaPeak {
  kernels::Isa isa;
  double f32 = 0;  // 10^9 operations a second
  double bf16 = 0;
  double bytes = 0;
};

struct KernelSpeed {
  std::string kernel;
  kernels::Isa isa;
  Bound bound;
  double rate = 0;   // 10^9 bytes a second for kMemory, else 10^9 operations
  double share = 0;  // fraction of the peak that `bound` names; 0 where it is not known
};

struct BenchKernelsResult {
  double memory = 0;  // 10^9 bytes a second, by the triad
  std::vector<IsaPeak> peaks;
  std::vector<KernelSpeed> speeds;
};

// kFailed when the arrays do not fit into memory.
[[nodiscard]] Result<BenchKernelsResult> bench_kernels(const run::NodeHost& host,
                                                       const BenchKernels& options);

[[nodiscard]] std::string to_json(const BenchKernelsResult& result, const BenchKernels& options);
// A table for people: a line for each kernel, a column for each instruction set.
[[nodiscard]] std::string to_text(const BenchKernelsResult& result);

}  // namespace gossamer::commands
