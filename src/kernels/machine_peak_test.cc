// SPDX-License-Identifier: Apache-2.0
#include "kernels/machine_peak.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/kernels.h"

namespace gossamer::kernels {
namespace {

// The loop does all its rounds: its value is the value of the recurrence s = 0.999 s + 0.001. It has ten
// chains, each of as many lanes as the count of operations says.
TEST(MachinePeak, LoopDoesWhatItCounts) {
  for (const Isa isa : kAllIsas) {
    if (!supported(isa)) continue;
    const std::size_t lanes = multiply_add_flops(isa) / 20;
    EXPECT_EQ(lanes, isa <= Isa::kSse4 ? 4U : isa == Isa::kAvx2 ? 8U : 16U);
    for (const std::size_t rounds : {0U, 1U, 700U}) {
      double want = 0;
      for (std::size_t chain = 0; chain < 10; ++chain) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          double s = static_cast<double>(lane) + 0.1 * static_cast<double>(chain);
          for (std::size_t i = 0; i < rounds; ++i) s = 0.999 * s + 0.001;
          want += s;
        }
      }
      EXPECT_NEAR(multiply_add_loop(isa, rounds), want, 1e-4 * want) << name(isa) << " " << rounds;
    }
  }
}

// The triad equals its formula on every instruction set, and writes nothing behind its end.
TEST(MachinePeak, TriadIsTheFormula) {
  for (const Isa isa : kAllIsas) {
    if (!supported(isa)) continue;
    std::vector<float> a(64, -1.0F);
    std::vector<float> b(64);
    std::vector<float> c(64);
    for (std::size_t i = 0; i < 64; ++i) b[i] = static_cast<float>(i), c[i] = static_cast<float>(i * i);
    triad(isa, {.a = a.data(), .b = b.data(), .c = c.data(), .s = 2, .n = 48});
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(a[i], i < 48 ? b[i] + 2 * c[i] : -1.0F) << name(isa);
  }
}

}  // namespace
}  // namespace gossamer::kernels
