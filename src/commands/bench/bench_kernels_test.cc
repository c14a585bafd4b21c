// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "commands/bench/kernel_speeds.h"
#include "host/posix/clock.h"

namespace gossamer::commands {
namespace {

using ::testing::HasSubstr;

BenchKernels small_kernels() {
  BenchKernels options;
  for (const char* text : {"hidden=64", "batch=64", "megabytes=1", "milliseconds=1"}) {
    EXPECT_TRUE(bench_kernels_keys().set_word(options, text).ok()) << text;
  }
  return options;
}

// Claim: every instruction set of this CPU has a peak, and a positive rate for every kernel. The share of a
// kernel is that of its rate in the peak that bounds it.
TEST(BenchKernels, MeasuresEveryKernelOnEveryIsa) {
  const host::PosixClock clock;
  const BenchKernelsResult result = measure_kernels(clock, small_kernels());
  std::size_t isas = 0;
  for (const kernels::Isa isa : kernels::kAllIsas) isas += kernels::supported(isa) ? 1 : 0;
  ASSERT_EQ(result.peaks.size(), isas);
  EXPECT_GT(result.memory, 0);
  std::set<std::string> names;
  for (const KernelSpeed& speed : result.speeds) {
    names.insert(speed.kernel);
    EXPECT_GT(speed.rate, 0) << speed.kernel;
  }
  EXPECT_EQ(result.speeds.size(), names.size() * isas);
  EXPECT_GT(names.size(), 30U);
  for (const IsaPeak& peak : result.peaks) {
    EXPECT_GT(peak.f32, 0);
    EXPECT_GT(peak.bf16, 0);
  }
  for (const KernelSpeed& speed : result.speeds) {
    const auto peak = std::ranges::find(result.peaks, speed.isa, &IsaPeak::isa);
    ASSERT_NE(peak, result.peaks.end());
    const double of = speed.bound == Bound::kMemory ? result.memory
                      : speed.bound == Bound::kF32  ? peak->f32
                      : speed.bound == Bound::kBf16 ? peak->bf16
                                                    : peak->bytes;
    EXPECT_NEAR(speed.share * of, speed.rate, 1e-6 * speed.rate) << speed.kernel;
  }
  const auto json = nlohmann::json::parse(to_json(result, small_kernels()));
  EXPECT_EQ(json["kernels"].size(), result.speeds.size());
  EXPECT_EQ(json["options"]["hidden"], 64);
  EXPECT_GT(json["peaks"]["memory_gb_per_s"], 0);
  EXPECT_GT(json["peaks"]["scalar"]["f32_gflops"], 0);
  const std::string text = to_text(result);
  for (const std::string& name : names) EXPECT_THAT(text, HasSubstr(name));
}

// Messages about wrong options name the nearest option or the range.
TEST(BenchKernels, RefusesNonsense) {
  BenchKernels options;
  EXPECT_THAT(bench_kernels_keys().set_word(options, "hiden=64").error().expected, HasSubstr("'hidden'"));
  EXPECT_THAT(bench_kernels_keys().set_word(options, "hidden=48").error().expected,
              HasSubstr("a multiple of 32"));
  EXPECT_FALSE(bench_kernels_keys().set_word(options, "batch").ok());
  EXPECT_FALSE(bench_kernels_keys().set_word(options, "megabytes=0").ok());
  EXPECT_EQ(options.hidden, 128U);
}

}  // namespace
}  // namespace gossamer::commands
