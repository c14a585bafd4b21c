// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/sparse/fleet/step/fleet_learner.h"
#include "learn/sparse/network/row_order.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::simulation {
namespace {

constexpr std::uint64_t kWarmUp = 5;    // steps until all links are in use
constexpr std::size_t kExchanges = 3;   // exchanges in a step
constexpr std::size_t kShareBytes = 8;  // bytes of a sample's loss share
// At least so many shards for each member.
constexpr std::size_t kShardsEach = 16;
// A step that takes longer than so many times the bound and a second is taken for endless.
constexpr double kPatience = 20;

TinyProblem::Options problem_of(const SparseStepsOptions& options) {
  const std::uint64_t steps = kWarmUp + options.steps;
  return {.features = options.features,
          .labels = options.labels,
          .hidden = options.units,
          .samples = options.batch,
          .features_each = options.nonzeros,
          .shard_shift = sparse::shard_shift(options.labels, kShardsEach * options.members),
          .steps = steps + 1,
          .snapshot_every = steps + 2,
          .codec = options.codec,
          .staleness = options.staleness,
          .isa = options.isa};
}

// The Work items of a step: one for each of its rounds, and those done while others are waited for.
struct WorkOfStep {
  std::int64_t rounds = static_cast<std::int64_t>(sparse_engine::step_rounds(1).size());
  std::int64_t ahead = 0;
};
WorkOfStep work_of_step(const SparseStepsOptions& options) {
  return {.ahead = options.members > 1 ? sparse_engine::kPiecesAhead : 0};
}

SparseFleet::Options fleet_of(const SparseStepsOptions& options) {
  const WorkOfStep works = work_of_step(options);
  const Duration work{options.compute.ns / (works.rounds + works.ahead)};
  const double rate = options.rate_mbps * 1e6 / 8;
  return {.first_members = options.members,
          .seed = options.seed,
          .longest_work = work,
          .shortest_work = work,
          .memory_bytes = std::uint64_t{1} << 50,
          .rates = {.up_bytes_per_second = rate, .down_bytes_per_second = rate},
          .path = {.delay = Duration{options.rtt.ns / 2}},
          .trace = options.trace};
}

// Bytes that have left all members.
std::uint64_t sent_bytes(SparseFleet& fleet) {
  std::uint64_t bytes = 0;
  for (const auto& [machine, member] : fleet->members()) bytes += fleet->internet().bytes_sent(machine);
  return bytes;
}

struct Passed {
  Instant at;
  std::uint64_t bytes = 0;
};

// Runs until all members have applied so many steps; nothing: the run failed or took too long.
std::optional<Passed> pass(SparseFleet& fleet, std::uint64_t step, Duration most) {
  const Instant end = fleet->timeline().now() + most;
  const double slice = 1e-4;
  while (!fleet.step() || *fleet.step() < StepNumber(step)) {
    if (fleet->failure() || fleet->timeline().now() >= end) return std::nullopt;
    fleet->run_for(slice);
  }
  return Passed{.at = fleet->timeline().now(), .bytes = sent_bytes(fleet)};
}

}  // namespace

SparseStepsBound least_of_step(const SparseStepsOptions& options) {
  const auto members = static_cast<double>(options.members);
  const double matrix = static_cast<double>(
      net::encoded_bytes(options.codec, {.rows = options.batch, .columns = options.units}));
  const double shares = static_cast<double>(options.batch * kShareBytes);
  SparseStepsBound least;
  // Each member has a part of h and of its gradient. It gives its part to all others, or gets it from all
  // others.
  least.bytes = 2 * (members - 1) / members * matrix + (members - 1) * shares;
  const double delays = options.members > 1 ? kExchanges * options.rtt.seconds() / 2 : 0;
  const double line = least.bytes * 8 / (options.rate_mbps * 1e6);
  const WorkOfStep works = work_of_step(options);
  const double compute = options.compute.seconds();
  const double between =
      compute * static_cast<double>(works.rounds) / static_cast<double>(works.rounds + works.ahead);
  const double in_turn = delays + line + between;
  least.seconds = std::max({options.staleness > 0 ? in_turn / 2 : in_turn, line, compute});
  return least;
}

SparseStepsReport run_sparse_steps(const SparseStepsOptions& options) {
  const SparseStepsBound least = least_of_step(options);
  const TinyProblem problem(problem_of(options));
  SparseFleet fleet(problem, fleet_of(options));
  const auto patience = [&](std::uint64_t steps) {
    return from_seconds(60 + static_cast<double>(steps) * (1 + kPatience * least.seconds));
  };
  SparseStepsReport report;
  const auto begin = pass(fleet, kWarmUp, patience(kWarmUp));
  const auto end =
      begin ? pass(fleet, kWarmUp + options.steps, patience(options.steps)) : std::optional<Passed>();
  report.virtual_seconds = (fleet->timeline().now() - Instant{}).seconds();
  report.state_hash = fleet->invariants().hash();
  report.frames_hash = fleet->internet().frames_hash();
  report.violation = fleet->invariants().violation();
  if (!end) {
    report.violation = fleet->failure().value_or("the members did not take their steps in time");
    return report;
  }
  const auto steps = static_cast<double>(options.steps);
  report.seconds_per_step = (end->at - begin->at).seconds() / steps;
  report.bytes_per_step =
      static_cast<double>(end->bytes - begin->bytes) / steps / static_cast<double>(options.members);
  const double one_way = options.rtt.seconds() / 2;
  const double waited = report.seconds_per_step - (least.seconds - kExchanges * one_way);
  if (one_way > 0 && options.members > 1 && options.staleness == 0)
    report.delays_per_exchange = waited / (kExchanges * one_way);
  return report;
}

}  // namespace gossamer::simulation
