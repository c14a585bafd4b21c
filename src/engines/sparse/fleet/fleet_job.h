// SPDX-License-Identifier: Apache-2.0
//
// FleetJob: what the members of a sparse run train together, as one of them has it. The same at all of them
// but for the machine's parts. Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/ids.h"
#include "base/probe.h"
#include "base/result.h"
#include "engines/sparse/fleet/fleet_defect.h"
#include "engines/sparse/fleet/fleet_probe.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/step_source.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/negatives.h"
#include "learn/sparse/network.h"
#include "learn/sparse/schedule.h"
#include "net/codec/codec.h"

namespace gossamer::engine {

// A step that this member has just applied.
struct FleetStep {
  Epoch epoch;  // of the layout
  StepNumber step;
  std::size_t rank = 0;     // this member's
  std::size_t members = 0;  // that had a share in it
  double loss = 0;          // this member's share: the sum over members is the loss of the step
};

struct FleetJob {
  FleetShape shape;
  sparse::RowOrder order;  // of the labels, for shards of 2^shape.shard_shift rows
  sparse::TableMoments moments;
  sparse::NetworkInit init;
  sparse::LearnerOptions learner;
  sparse::Schedule schedule;            // total_steps of them
  std::uint64_t snapshot_every = 16;    // steps, >= 1
  net::Codec codec = net::Codec::kF32;  // of what is exchanged in a step
  // Borrowed for the job's life. Labels are output rows (sparse::by_row(), RowSteps).
  const sparse::LabelCounts& labels;
  StepSource& steps;
  const kernels::Kernels& kernels;
  host::Compute& compute;
  // After each step, on the thread that computes.
  std::function<void(const FleetStep&)> stepped = {};
  // After the last step, and again whenever what this member holds has changed since: its part of the trained
  // network, for whoever puts the parts together. May be empty.
  std::function<Result<void>(sparse::Network& part)> deliver = {};
  // Of a simulation, in which loop and computing have one thread.
  FleetDefect defect = FleetDefect::kNone;
  ProbeCounts<FleetProbe>* probes = nullptr;
};

}  // namespace gossamer::engine
