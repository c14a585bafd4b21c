// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "learn/sparse/network/network_pieces.h"

namespace gossamer::simulation {
namespace {

using sparse_engine::FleetEngine;
using sparse_engine::FleetLearner;
using sparse_engine::PieceId;
using sparse_engine::Pieces;

constexpr Duration kLookEvery{20'000'000};

struct Lengths {
  double difference = 0;  // squared
  double length = 0;      // squared
};

void add(std::span<const float> got, std::span<const float> want, Lengths& sums) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(want[i]);
    sums.difference += difference * difference;
    sums.length += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
}

// Adds the differences between a member's part of the network and the same part of the whole.
void add_part(sparse::Network& part, sparse::Network& whole, Lengths& sums) {
  const host::Range& columns = part.part.columns;
  for (std::size_t row = 0; row < part.embedding.rows(); ++row) {
    const auto got = std::span(part.embedding.weights(row), part.embedding.width());
    add(got, std::span(whole.embedding.weights(row) + columns.begin, got.size()), sums);
  }
  for (std::size_t i = 0; i < part.dense.size(); ++i) {
    const sparse::DenseLayer& got = part.dense[i];
    const sparse::DenseLayer& want = whole.dense[i];
    const std::size_t begin = part.part.units[i].begin;
    for (std::size_t unit = 0; unit < got.weights.rows(); ++unit) {
      add(std::span(got.weights.weights(unit), got.weights.width()),
          std::span(want.weights.weights(begin + unit), got.weights.width()), sums);
    }
    add(got.bias.span().first(got.weights.rows()), want.bias.span().subspan(begin, got.weights.rows()), sums);
  }
  for (std::uint32_t row = 0; row < part.output.rows(); ++row) {
    if (!part.part.rows.contains(row)) continue;
    add(std::span(part.output.weights(row), part.output.width()),
        std::span(whole.output.weights(row), part.output.width()), sums);
    add(part.bias.span().subspan(row, 1), whole.bias.span().subspan(row, 1), sums);
  }
}

// One track for each shard.
std::vector<cluster::TrackId> tracks_of(const cluster::Workload& workload) {
  std::vector<cluster::TrackId> tracks;
  for (const placement::Thing& thing : workload.things()) tracks.emplace_back(thing.id.value);
  return tracks;
}

}  // namespace

SparseFleet::SparseFleet(const TinyProblem& problem, const Options& options)
    : problem_(problem),
      options_(options),
      rng_(options.seed, Purpose::kFault, 22),
      workload_({problem.shape(), {.copies = options.copies, .start = problem.start()}}, fleet_),
      fleet_({.workload = workload_,
              .configuration = "tiny",
              .tracks = tracks_of(workload_),
              .first_members = options.first_members,
              .seed = options.seed,
              .store = options.store,
              .path = options.path,
              .scatter = options.scatter,
              .machines_again = options.machines_again,
              .clock_error = options.clock_error,
              .freeze_time = options.freeze_time,
              .defect = options.defect,
              .trace = options.trace,
              .others = options.others,
              .new_member = [this] { return new_member(); },
              .misbehave = options.misbehave}),
      watch_(fleet_, {.copies = options.copies, .trace = options.trace}) {
  for (std::size_t i = 0; i < options.first_members; ++i) join();
  look();
}

cluster::Decision SparseFleet::Decider::decide(const cluster::Rest& rest) {
  for (const auto& [thing, node] : rest.after) {
    if (rest.reports.contains(node)) continue;
    const std::string what =
        fmt::format("node {} is to hold shard {}, and has not come to rest", node.value, thing.value);
    fleet_.invariants().broke(what);
    return {.bytes = {}, .committed = {}, .failure = Error{.what = what}};
  }
  return workload_.decide(rest);
}

std::string SparseFleet::join() {
  std::string machine = fleet_.join(new_member());
  fleet_.internet().set_rates(machine, options_.rates);
  return machine;
}

SimMember::Options SparseFleet::new_member() {
  const std::uint64_t seed = ++joined_;
  return {.driver = options_.driver,
          .memory_bytes = options_.memory_bytes,
          .hidden = static_cast<double>(rng_.uniform()) < options_.hidden,
          .longest_work = options_.longest_work,
          .shortest_work = options_.shortest_work,
          .make_engine =
              [this, seed](cluster::MemberProcess& process) {
                TinyProblem::Falsify falsify;
                if (options_.falsify) {
                  falsify = [this, &process](Slices& given) {
                    if (process.member() != nullptr) options_.falsify(process.member()->self(), given);
                  };
                }
                return std::make_unique<FleetEngine>(
                    process,
                    [this, seed, falsify = std::move(falsify)](
                        const std::string&) -> Result<std::shared_ptr<const sparse_engine::FleetJob>> {
                      return problem_.make_job(seed, NodeId(seed), falsify);
                    });
              },
          .watch = [this](SimMember& process) { watch_.saw(process, engine_of(process)); }};
}

void SparseFleet::look() {
  watch_.look();
  fleet_.timeline().after(kLookEvery, [this] { look(); });
}

bool SparseFleet::holds_nothing(const std::string& machine) {
  const auto part = engine(machine).part();
  return !part || pieces_of(problem_.shape(), *part).empty();
}

std::optional<StepNumber> SparseFleet::step() {
  std::optional<StepNumber> least;
  for (const auto& [machine, member] : fleet_.members()) {
    const auto step = engine(machine).step();
    if (step && (!least || *step < *least)) least = step;
  }
  return least;
}

// The learner of a member by the last placement. A member that is fenced and has not learnt it yet holds
// things that are another's by now.
FleetLearner* SparseFleet::learner(SimMember& process) {
  const FleetEngine& engine = engine_of(process);
  const auto taken_up = engine.taken_up();
  if (process.member() == nullptr || fleet_.durable().fenced(process.member()->self().incarnation))
    return nullptr;
  if (!taken_up || !taken_up->recovered || taken_up->epoch != fleet_.durable().begun()) return nullptr;
  return engine.learner();
}

std::optional<std::string> SparseFleet::unfinished() {
  Pieces held;
  for (const auto& [machine, member] : fleet_.members()) {
    FleetLearner* const one = learner(*member);
    if (one == nullptr) continue;
    if (one->applied().value != problem_.steps())
      return fmt::format("{} has applied {} of {} steps", machine, one->applied().value, problem_.steps());
    held.merge(pieces_of(problem_.shape(), one->network().part));
  }
  for (const PieceId& piece : pieces_of(problem_.shape(), sparse::whole(problem_.shape().network))) {
    if (!held.contains(piece))
      return fmt::format("nobody holds piece {} of layer {}", piece.index, piece.layer);
  }
  return std::nullopt;
}

double SparseFleet::distance_to(sparse::Network& whole) {
  Lengths sums;
  for (const auto& [machine, member] : fleet_.members()) {
    if (FleetLearner* const one = learner(*member)) add_part(one->network(), whole, sums);
  }
  return std::sqrt(sums.difference / sums.length);
}

double SparseFleet::distance(sparse::Network& one, sparse::Network& other) {
  Lengths sums;
  add_part(one, other, sums);
  return std::sqrt(sums.difference / sums.length);
}

// A unit whose input for a sample is 0 but for rounding may be active, or not. A gradient that is 0 but for
// rounding may move a weight as far as a large one, because Adam divides it by its own size.
bool SparseFleet::rounding_takes(const TinyProblem& problem, const Trained& how, sparse::Network& alone,
                                 double distance) {
  constexpr std::uint64_t kNudges = 8;
  for (std::uint64_t nudge = 1; nudge <= kNudges; ++nudge) {
    sparse::Network other = problem.train_alone(how.fresh, how.found, nudge);
    if (SparseFleet::distance(other, alone) >= distance / 2) return true;
  }
  return false;
}

std::optional<std::string> SparseFleet::other_last_step(sparse::Network& whole) {
  for (const auto& [machine, member] : fleet_.members()) {
    FleetLearner* const one = learner(*member);
    if (one == nullptr) continue;
    for (const PieceId& id : pieces_of(problem_.shape(), one->network().part)) {
      const sparse::NetworkPiece piece = piece_of(problem_.shape(), id);
      const sparse::PieceRows held(one->network(), piece);
      const sparse::PieceRows wanted(whole, piece);
      for (std::size_t row = 0; row < held.size(); ++row) {
        const std::uint32_t got = held.last_step(row);
        const std::uint32_t want = wanted.last_step(row);
        if (got == want) continue;
        return fmt::format("row {} of piece {} of layer {} at {} was last updated in step {}, not in {}", row,
                           id.index, id.layer, machine, got, want);
      }
    }
  }
  return std::nullopt;
}

}  // namespace gossamer::simulation
