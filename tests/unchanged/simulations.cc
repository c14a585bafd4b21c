// SPDX-License-Identifier: Apache-2.0
//
// simulations: prints a line for each of 20 seeds of each simulation preset: PRESET SEED STATE FRAMES. STATE
// is the state_hash, FRAMES a hash of every byte that the simulated processes sent: their messages, in order.
//
// Kernels are the scalar ones, so that every machine prints the same.
#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "kernels/isa.h"
#include "simulation/cluster_chaos.h"
#include "simulation/sparse/sparse_chaos.h"
#include "simulation/sparse/sparse_steps.h"

namespace gossamer::simulation {
namespace {

constexpr std::uint64_t kSeeds = 20;
constexpr auto kIsa = kernels::Isa::kScalar;

template <class Report>
void print(std::string_view preset, std::uint64_t seed, const Report& report) {
  fmt::print("{} {} {:016x} {:016x}\n", preset, seed, report.state_hash, report.frames_hash);
}

}  // namespace
}  // namespace gossamer::simulation

int main() {
  using namespace gossamer::simulation;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    print("cluster-chaos", seed, run_cluster_chaos({.seed = seed}));
    print("sparse-chaos", seed, run_sparse_chaos({.seed = seed, .isa = kIsa}));
    print("sparse-steps", seed,
          run_sparse_steps({.seed = seed, .members = 3, .batch = 32, .steps = 3, .isa = kIsa}));
  }
}
