// SPDX-License-Identifier: Apache-2.0
//
// SparseSteps: what steps of a sparse run cost where nothing goes wrong: members with the real engine
// exchange real bytes over simulated lines, and what they compute takes a given time. Beside it the least
// that the exchanges can take.
//
// Thread rule: one thread for each run; runs share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "kernels/isa.h"
#include "net/codec/codec.h"
#include "simulation/faulty_fleet.h"

namespace gossamer::simulation {

struct SparseStepsOptions {
  std::uint64_t seed = 1;
  std::size_t members = 8;  // >= 1
  std::size_t units = 128;
  std::size_t features = 8192;
  std::size_t labels = 8192;
  std::size_t batch = 256;               // samples of a step
  std::size_t nonzeros = 75;             // features of a sample, at most
  std::uint64_t steps = 20;              // measured, after a few that are not; >= 1
  double rate_mbps = 1000;               // of each member's line, up and down; 10^6 bits a second
  Duration rtt = from_milliseconds(20);  // between any two
  Duration compute = {};                 // of a member's share of a step
  net::Codec codec = net::Codec::kBf16;
  std::uint64_t staleness = 0;  // 1: two steps are in flight
  kernels::Isa isa = kernels::best_isa();
  TimedTrace trace = {};
};

// Where members exchange `bytes` in three exchanges one after the other, and compute in between; two of six
// pieces of the computing while they wait. With two steps in flight each takes so long, but one ends in half
// that time. No step ends faster than members compute or lines carry.
struct SparseStepsBound {
  double bytes = 0;  // that a member sends in a step
  double seconds = 0;
};
[[nodiscard]] SparseStepsBound least_of_step(const SparseStepsOptions& options);

struct SparseStepsReport {
  std::optional<std::string> violation;  // the steps were not taken
  std::uint64_t state_hash = 0;
  std::uint64_t frames_hash = 0;  // every byte that processes sent
  double virtual_seconds = 0;
  double seconds_per_step = 0;
  double bytes_per_step = 0;  // that leave a member, with headers and beats; the mean over members
  // One way, that an exchange waits: what is left of a step without computing and without the time that the
  // bound's bytes take. 0 where there is no delay, or two steps are in flight.
  double delays_per_exchange = 0;
};
[[nodiscard]] SparseStepsReport run_sparse_steps(const SparseStepsOptions& options);

}  // namespace gossamer::simulation
