// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gossamer::simulation {
namespace {

using sparse_engine::FleetEngine;
using sparse_engine::FleetTakenUp;
using sparse_engine::LayoutMember;
using sparse_engine::RecoveryPlan;

std::string words_of(const sparse::NetworkPiece& piece) {
  return fmt::format("{}..{} of layer {}", piece.range.begin, piece.range.end, piece.layer);
}

// Describes what a member does before it goes on.
std::string words_of(const FleetTakenUp& taken_up) {
  const RecoveryPlan& plan = taken_up.plan;
  std::string words = fmt::format("takes up epoch {} as rank {}: goes on at step {}, base {}",
                                  taken_up.epoch.value, taken_up.rank, plan.resume.value, plan.base.value);
  if (plan.behind[taken_up.rank]) words += "; is a step behind";
  if (std::ranges::count(plan.without_log, taken_up.rank) != 0)
    words += fmt::format("; gets the log of rank {}", plan.log_donor);
  for (const RecoveryPlan::Lost& one : plan.lost) {
    if (one.rank == taken_up.rank) words += "; computes anew " + words_of(one.piece);
  }
  for (const RecoveryPlan::Fetch& one : plan.fetches) {
    if (one.to == taken_up.rank && one.from != one.to)
      words += fmt::format("; gets a copy of {}/{} of rank {}", one.piece.layer, one.piece.index, one.from);
  }
  for (const RecoveryPlan::Move& one : plan.moves) {
    if (one.to == taken_up.rank) words += fmt::format("; gets {} of rank {}", words_of(one.piece), one.from);
  }
  if (plan.snapshot) words += "; a snapshot before moves";
  return words;
}

std::size_t holders(const sparse_engine::Layout& layout) {
  return static_cast<std::size_t>(std::ranges::count_if(layout.members, [](const LayoutMember& member) {
    return !sparse_engine::shards_of(member.after).empty();
  }));
}

}  // namespace

void SparseWatch::trace(const std::string& machine, const std::string& what) const {
  if (options_.trace) options_.trace((fleet_.timeline().now() - Instant{}).seconds(), machine, what);
}

void SparseWatch::saw(SimMember& process, const FleetEngine& engine) {
  const std::optional<Incarnation> life = process.life();
  Seen& seen = seen_[process.machine()];
  if (life != seen.life) {
    seen = {};
    seen.life = life;
  }
  if (!life) return;
  const auto step = engine.step();
  if (step && seen.step && *step != *seen.step) saw_step(process.machine(), seen, *step);
  seen.step = step;
  if (const auto taken_up = engine.taken_up()) saw_layout(process.machine(), seen, *taken_up);
}

void SparseWatch::saw_step(const std::string& machine, Seen& seen, StepNumber step) {
  Invariants& invariants = fleet_.invariants();
  if (step.value != seen.step->value + 1) {
    return invariants.broke(
        fmt::format("{} had applied {} steps, now {}", machine, seen.step->value, step.value));
  }
  for (const std::size_t shard : seen.shards) invariants.applied(shard, *seen.step, *seen.life);
}

void SparseWatch::saw_layout(const std::string& machine, Seen& seen, const FleetTakenUp& taken_up) {
  if (seen.told != taken_up.epoch) {
    seen.told = taken_up.epoch;
    if (options_.trace) trace(machine, words_of(taken_up));
  }
  const bool took_up = taken_up.recovered && seen.recovered != taken_up.epoch;
  if (took_up) {
    seen.recovered = taken_up.epoch;
    seen.shards = sparse_engine::shards_of(taken_up.layout.members[taken_up.rank].after);
    fleet_.invariants().took_up(*seen.life, seen.recovered, {seen.shards.begin(), seen.shards.end()},
                                *seen.step);
    trace(machine, fmt::format("goes on with epoch {} at step {}", seen.recovered.value, seen.step->value));
  }
  if (seen.known_by_all != taken_up.known_by_all && taken_up.recovered)
    trace(machine, fmt::format("knows that all have stored step {}", taken_up.known_by_all.value));
  // From now on initial values may not be copies.
  if (safe_ && taken_up.known_by_all > StepNumber())
    safe_->deaths = std::min(safe_->deaths, options_.copies + 1);
  seen.known_by_all = taken_up.known_by_all;
  seen.stored = taken_up.stored;
  seen.lacks_no_more = taken_up.lacks_no_more;
  compare(machine, seen);
}

void SparseWatch::compare_steps(const std::string& ahead, const Seen& theirs, const std::string& behind,
                                const Seen& its) {
  if (*theirs.step <= *its.step) return;
  if (theirs.step->value == its.step->value + 1 && its.lacks_no_more) return;
  fleet_.invariants().broke(fmt::format(
      "{} has applied {} steps, and {}, with which it works, only {}, and lacks more than gradients", ahead,
      theirs.step->value, behind, its.step->value));
}

// Compares a member with others that work with it, and with others that have been told the same.
void SparseWatch::compare(const std::string& machine, const Seen& seen) {
  Invariants& invariants = fleet_.invariants();
  for (const auto& [other, theirs] : seen_) {
    if (other == machine || theirs.told != seen.told || !fleet_.members().contains(other)) continue;
    if (theirs.recovered == seen.told && seen.recovered == seen.told) {
      compare_steps(machine, seen, other, theirs);
      compare_steps(other, theirs, machine, seen);
    }
    if (theirs.known_by_all > seen.stored || seen.known_by_all > theirs.stored) {
      invariants.broke(fmt::format(
          "{} knows that all have stored step {} and has stored {}; {} knows of {} and has stored {}",
          machine, seen.known_by_all.value, seen.stored.value, other, theirs.known_by_all.value,
          theirs.stored.value));
    }
  }
}

void SparseWatch::look() {
  std::erase_if(seen_, [this](const auto& one) { return !fleet_.members().contains(one.first); });
  const Epoch epoch = fleet_.durable().installed();
  if (epoch != fleet_.durable().begun() || fleet_.durable().stopping()) return;
  // The store may not know of a death yet. Where nobody leads, none may be on its way to it.
  const cluster::Coordinator* const decides = fleet_.leader();
  const bool waits = decides == nullptr ? fleet_.taken_and_fenced() < fleet_.marked().taken()
                                        : decides->view().epoch() != epoch;
  if (waits) return;
  std::size_t recovered = 0;
  std::size_t members = 0;
  std::size_t with_parts = 0;
  bool all_kept = false;
  for (const auto& [machine, member] : fleet_.members()) {
    const auto taken_up = static_cast<const FleetEngine&>(member->engine()).taken_up();
    if (!taken_up || taken_up->epoch != epoch || !taken_up->recovered) continue;
    ++recovered;
    members = taken_up->layout.members.size();
    with_parts = holders(taken_up->layout);
    all_kept = all_kept || taken_up->all_kept;
  }
  if (recovered == 0 || recovered < members) return;
  // Initial values are copies while there is no snapshot, and everybody has them.
  if (all_kept)
    safe_ = {.fenced = fleet_.taken_and_fenced(), .deaths = std::min(options_.copies + 1, with_parts)};
  if (!safe_) safe_ = {.fenced = fleet_.taken_and_fenced(), .deaths = with_parts};
}

bool SparseWatch::may_have_lost() const {
  return safe_ && fleet_.taken_and_fenced() - safe_->fenced >= safe_->deaths;
}

}  // namespace gossamer::simulation
