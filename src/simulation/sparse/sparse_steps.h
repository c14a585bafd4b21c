// SPDX-License-Identifier: Apache-2.0
//
// SparseSteps: the cost of a sparse run's steps if nothing goes wrong. Members with the real engine exchange
// real bytes over simulated lines, and their computing takes a given time. Beside it stands the least time
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
#include "simulation/fleet.h"
#include "simulation/sparse/tiny_problem.h"

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
  Duration compute = {};                 // time of a member's part of a step
  net::Codec codec = net::Codec::kBf16;
  std::uint64_t staleness = 0;  // 1: two steps are in flight
  kernels::Isa isa = kSimulatedIsa;
  TimedTrace trace = {};
};

// The least cost of a step. Members exchange `bytes` in three exchanges, one after the other, and compute in
// between. They compute three of seven equal pieces while they wait. With two steps in flight each takes as
// long, but one ends in half that time. No step ends faster than members compute or lines carry.
struct SparseStepsBound {
  double bytes = 0;  // bytes that a member sends in a step
  double seconds = 0;
};
[[nodiscard]] SparseStepsBound least_of_step(const SparseStepsOptions& options);

struct SparseStepsReport {
  std::optional<std::string> violation;  // the steps were not taken
  std::uint64_t state_hash = 0;
  std::uint64_t frames_hash = 0;  // every byte that processes sent
  double virtual_seconds = 0;
  double seconds_per_step = 0;
  double bytes_per_step = 0;  // bytes that leave a member, with headers and beats; mean over members
  // One-way delays that an exchange waits: the rest of a step without computing and without the time of the
  // bound's bytes. 0 without a delay, or with two steps in flight.
  double delays_per_exchange = 0;
};
[[nodiscard]] SparseStepsReport run_sparse_steps(const SparseStepsOptions& options);

}  // namespace gossamer::simulation
