// SPDX-License-Identifier: Apache-2.0
//
// The measurements of `bench kernels` (bench_kernels.h): peaks first, then every kernel, one instruction set
// after the other.
//
// Thread rule: one thread.
#pragma once

#include "commands/bench/bench_kernels.h"
#include "host/api/clock.h"

namespace gossamer::commands {

// Every instruction set of this CPU has the same kernels in the same order.
[[nodiscard]] BenchKernelsResult measure_kernels(const host::Clock& clock, const BenchKernels& options);

}  // namespace gossamer::commands
