// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/recovery_plan.h"

#include <algorithm>
#include <map>
#include <optional>

namespace gossamer::sparse_engine {
namespace {

using host::Range;

bool empty(const Range& range) { return range.begin >= range.end; }

// Cuts the wanted columns where their holder changes. Each cut is held by one member, or lost.
void divide(const Layout& layout, std::size_t layer, std::size_t to, RecoveryPlan& plan) {
  const Range wanted = columns_of(layout.members[to].after, layer);
  for (std::size_t at = wanted.begin; at < wanted.end;) {
    std::size_t end = wanted.end;
    std::optional<std::size_t> holder;
    for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
      if (!layout.members[rank].before) continue;
      const Range& has = columns_of(*layout.members[rank].before, layer);
      if (has.begin <= at && at < has.end) {
        holder = rank;
        end = std::min(end, has.end);
      } else if (at < has.begin) {
        end = std::min(end, has.begin);
      }
    }
    const sparse::NetworkPiece piece{.layer = layer, .range = {at, end}};
    if (!holder) {
      plan.lost.push_back({.rank = to, .piece = piece});
    } else if (*holder != to) {
      plan.moves.push_back({.from = *holder, .to = to, .piece = piece});
    }
    at = end;
  }
}

void divide_shards(const Layout& layout, const FleetShape& shape, std::size_t to, RecoveryPlan& plan) {
  const sparse::HeldRows& wanted = layout.members[to].after.rows;
  for (const std::size_t shard : shards_of(layout.members[to].after)) {
    const sparse::NetworkPiece piece{.layer = shape.layers(), .range = wanted.rows_of(shard)};
    std::optional<std::size_t> holder;
    for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
      if (layout.members[rank].before && layout.members[rank].before->rows.holds(shard)) holder = rank;
    }
    if (!holder) {
      plan.lost.push_back({.rank = to, .piece = piece});
    } else if (*holder != to) {
      plan.moves.push_back({.from = *holder, .to = to, .piece = piece});
    }
  }
}

// Prefers the member's own copy, which costs nothing.
void find_copies(const Layout& layout, const FleetShape& shape, RecoveryPlan& plan) {
  if (plan.base == StepNumber()) return;
  for (const RecoveryPlan::Lost& lost : plan.lost) {
    const Pieces pieces = pieces_of(shape, part_of(shape, lost.piece));
    for (const PieceId& piece : pieces) {
      std::optional<std::size_t> from;
      for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
        if (!layout.members[rank].copies_before.contains(piece)) continue;
        if (!from || rank == lost.rank) from = rank;
      }
      if (from) plan.fetches.push_back({.from = *from, .to = lost.rank, .piece = piece});
    }
  }
}

}  // namespace

RecoveryPlan plan_recovery(const Layout& layout, const FleetShape& shape) {
  RecoveryPlan plan;
  plan.base = layout.base;
  plan.resume = layout.resume;
  bool donor = false;
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
    const LayoutMember& member = layout.members[rank];
    plan.behind.push_back(member.before && member.applied < layout.resume);
    for (std::size_t layer = 0; layer < shape.layers(); ++layer) divide(layout, layer, rank, plan);
    divide_shards(layout, shape, rank, plan);
    if (!member.before) plan.without_log.push_back(rank);
    if (member.before && !donor) plan.log_donor = rank;
    donor = donor || member.before.has_value();
  }
  find_copies(layout, shape, plan);
  for (const LayoutMember& member : layout.members) plan.keeps.push_back(member.copies_after);
  for (const RecoveryPlan::Move& move : plan.moves)
    plan.keeps[move.to].merge(pieces_of(shape, part_of(shape, move.piece)));
  // Recomputed pieces have no holder until the recovery has finished.
  for (const RecoveryPlan::Lost& one : plan.lost)
    plan.keeps[one.rank].merge(pieces_of(shape, part_of(shape, one.piece)));
  bool all_there = true;
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank)
    all_there = all_there && std::ranges::includes(layout.members[rank].copies_before, plan.keeps[rank]);
  plan.snapshot = !plan.moves.empty() && (plan.base < plan.resume || !all_there);
  if (!donor || plan.base == plan.resume) plan.without_log.clear();
  for (const RecoveryPlan::Lost& one : plan.lost) {
    if (one.piece.layer == shape.layers() || plan.base == plan.resume) continue;
    plan.wants.push_back(
        {.rank = one.rank, .layer = one.piece.layer, .columns = one.piece.range, .begin = plan.base});
  }
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
    if (!plan.behind[rank]) continue;
    const Range columns = columns_of(*layout.members[rank].before, 0);
    if (empty(columns)) continue;
    plan.wants.push_back(
        {.rank = rank, .layer = 0, .columns = columns, .begin = StepNumber(plan.resume.value - 1)});
  }
  return plan;
}

SnapshotPlan snapshot_of(const Layout& layout, const FleetShape& shape) {
  SnapshotPlan snapshot;
  for (const LayoutMember& one : layout.members) {
    snapshot.held.push_back(pieces_of(shape, one.after));
    snapshot.keeps.push_back(one.copies_after);
  }
  return snapshot;
}

SnapshotPlan snapshot_before_moves(const Layout& layout, const RecoveryPlan& plan, const FleetShape& shape) {
  std::map<PieceId, std::size_t> holders;
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
    const auto& before = layout.members[rank].before;
    if (!before) continue;
    for (const PieceId& piece : pieces_of(shape, *before)) holders[piece] = rank;
  }
  for (const RecoveryPlan::Lost& lost : plan.lost) {
    for (const PieceId& piece : pieces_of(shape, part_of(shape, lost.piece))) holders[piece] = lost.rank;
  }
  SnapshotPlan snapshot{.held = std::vector<Pieces>(layout.members.size()), .keeps = plan.keeps};
  for (const auto& [piece, rank] : holders) snapshot.held[rank].insert(piece);
  return snapshot;
}

}  // namespace gossamer::sparse_engine
