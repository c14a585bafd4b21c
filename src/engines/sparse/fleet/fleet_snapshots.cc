// SPDX-License-Identifier: Apache-2.0
//
// FleetEngine: the functions that keep copies of other members' pieces.
#include <algorithm>
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_engine.h"

namespace gossamer::sparse_engine {

// Whether it is time for a snapshot. All members answer the same.
bool FleetEngine::snapshot_due() const {
  const StepNumber step = life_->applied;
  if (life_->snapshot && life_->snapshot->step == step) return false;
  if (step > life_->copies.step)
    return step == life_->layout->resume || step.value % life_->job->snapshot_every == 0;
  // There is a snapshot as of this step, but perhaps not all copies are where they should be.
  if (step == life_->job->start || all_kept()) return false;
  reach(FleetProbe::kSameStepSnapshot);
  return true;
}

void FleetEngine::begin_snapshot() {
  // A new member has applied nothing until it holds something.
  const bool recovering = life_->bench->recovery != nullptr;
  Snapshot& snapshot = life_->snapshot.emplace();
  snapshot.step = recovering ? life_->layout->resume : life_->applied;
  for (const LayoutMember& one : life_->layout->members) snapshot.keeps.push_back(one.copies_after);
  if (recovering) snapshot.keeps = life_->plan.keeps;
  const std::shared_ptr<Bench> bench = life_->bench;
  want(Doing::kSnapshot, [bench, copies = life_->copies, keeps = snapshot.keeps] {
    PieceSources sources;
    if (bench->recovery != nullptr) {
      sources = bench->recovery->sources();
    } else {
      sparse::Network& network = bench->learner->network();
      for (const PieceId& piece : pieces_of(bench->learner->job().shape, network.part))
        sources[piece] = &network;
    }
    bench->deltas.clear();
    for (std::size_t rank = 0; rank < keeps.size(); ++rank) {
      bench->deltas.push_back(make_delta(bench->learner->job(), sources,
                                         {.keeps = keeps[rank],
                                          .has = copies.kept[rank],
                                          .since = copies.step,
                                          .memory = bench->snapshot_memory}));
    }
  });
}

void FleetEngine::give_snapshot(Instant now) {
  if (!life_->snapshot) return;
  Snapshot& snapshot = *life_->snapshot;
  for (const Slices& delta : std::exchange(life_->bench->deltas, {})) {
    snapshot.sizes.push_back(total_bytes(delta));
    snapshot.given.insert(snapshot.given.end(), delta.begin(), delta.end());
  }
  if (!life_->working) return;
  const std::size_t members = life_->layout->members.size();
  const cluster::Operation sizes{.kind = cluster::OperationKind::kAllGather,
                                 .parts = std::vector(members, members * sizeof(std::uint64_t))};
  exchange_snapshot(kSizes, sizes, {Slice::copy_of(std::as_bytes(std::span(snapshot.sizes)))}, now);
  // Steps go on beside a snapshot. A recovery does not, as its pieces are about to move.
  if (life_ && life_->bench->recovery == nullptr) go_on_stepping(now);
}

void FleetEngine::exchange_snapshot(std::uint64_t part, const cluster::Operation& operation, Slices given,
                                    Instant now) {
  const std::uint64_t id = kSnapshots + life_->snapshot->step.value * kSnapshotParts + part;
  cluster::CollectiveEvents events;
  life_->recovery.begin(cluster::OperationId(id), operation, std::move(given), events);
  carry_out(std::move(events), now);
}

void FleetEngine::snapshot_exchanged(std::uint64_t part, std::vector<Slices> got, Instant now) {
  Snapshot& snapshot = *life_->snapshot;
  const std::size_t members = life_->layout->members.size();
  if (part == kSizes) {
    cluster::Operation deltas{.kind = cluster::OperationKind::kAllToAll, .parts = snapshot.sizes, .from = {}};
    std::vector<std::uint64_t> sizes(members);
    for (const Slices& one : got) {
      copy_front(one, std::as_writable_bytes(std::span(sizes)));
      deltas.from.push_back(sizes[life_->rank]);
    }
    return exchange_snapshot(kDeltas, deltas, std::move(snapshot.given), now);
  }
  if (part == kDeltas) {
    snapshot.got = std::move(got);
    snapshot.stored = true;
    if (life_->job->defect == FleetDefect::kEarlyForget) return snapshot_complete(now);
    const cluster::Operation stored{.kind = cluster::OperationKind::kAllGather,
                                    .parts = std::vector<std::uint64_t>(members, 1)};
    return exchange_snapshot(kStored, stored, {Slice::of(std::string(1, '\0'))}, now);
  }
  snapshot_complete(now);
}

// All members have stored their copies. Older copies and logs are not needed any more.
void FleetEngine::snapshot_complete(Instant now) {
  ++counters_.snapshots;
  Snapshot snapshot = std::move(*life_->snapshot);
  life_->snapshot.reset();
  life_->copies = {.step = snapshot.step, .kept = snapshot.keeps};
  keep(std::move(snapshot));
  if (!life_->waits_for_snapshot) return;
  if (life_->bench->recovery == nullptr) return go_on_stepping(now);
  life_->waits_for_snapshot = false;
  next_stage(now);
}

void FleetEngine::keep(Snapshot snapshot) {
  life_->upkeep.emplace_back([snapshot = std::move(snapshot)](Bench& bench) {
    if (auto kept = bench.vault->apply(snapshot.step, snapshot.got); !kept.ok()) bench.taken = kept;
    StepLog& log = bench.learner->log();
    log.erase(log.begin(), log.lower_bound(snapshot.step));
  });
}

}  // namespace gossamer::sparse_engine
