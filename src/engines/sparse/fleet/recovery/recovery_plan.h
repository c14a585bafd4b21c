// SPDX-License-Identifier: Apache-2.0
//
// RecoveryPlan: what members do before they go on with a new layout (docs/protocols/sparse-step.md, "Nothing
// is lost"). It follows from the layout alone, so it is the same at all members.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "engines/sparse/fleet/step/layout.h"
#include "learn/sparse/network/network_pieces.h"

namespace gossamer::sparse_engine {

struct RecoveryPlan {
  // A piece that no member holds any more. The member of `rank` computes it anew from a copy as of `base`, or
  // from the state that the run began with.
  struct Lost {
    std::size_t rank;
    sparse::NetworkPiece piece;
  };
  // Where a copy of a lost piece lies.
  struct Fetch {
    std::size_t from;
    std::size_t to;
    PieceId piece;
  };
  // Columns of dh of a hidden layer that the member of `rank` needs, for the steps from `begin` to resume.
  struct Want {
    std::size_t rank;
    std::size_t layer;
    host::Range columns;
    StepNumber begin;
  };
  // A piece that changes hands between two living members.
  struct Move {
    std::size_t from;
    std::size_t to;
    sparse::NetworkPiece piece;
  };

  StepNumber base;
  StepNumber resume;
  std::vector<Lost> lost;
  std::vector<Fetch> fetches;
  std::vector<Want> wants;  // for lost columns and units, and for members that are behind
  std::vector<Move> moves;
  bool snapshot = false;  // before the pieces move
  // By rank: the pieces that the member has a copy of after that snapshot. Beside the pieces that it keeps
  // from then on, these are the pieces that it gets, moved or computed anew. Its recovery may be cut short
  // when their giver has gone on.
  std::vector<Pieces> keeps;
  std::vector<bool> behind;  // by rank: it has to apply the step before `resume`
  // The members that need the log of the steps from `base` to `resume`, and the rank that gives it.
  std::vector<std::size_t> without_log;
  std::size_t log_donor = 0;
};

[[nodiscard]] RecoveryPlan plan_recovery(const Layout& layout, const FleetShape& shape);

// What members have and get in a snapshot, by rank.
struct SnapshotPlan {
  std::vector<Pieces> held;   // by the member
  std::vector<Pieces> keeps;  // what it has copies of afterwards
};
// A snapshot between steps.
[[nodiscard]] SnapshotPlan snapshot_of(const Layout& layout, const FleetShape& shape);
// The snapshot before pieces move. A member has what it held, and what it has computed anew. If two members
// have a piece, the one of higher rank counts.
[[nodiscard]] SnapshotPlan snapshot_before_moves(const Layout& layout, const RecoveryPlan& plan,
                                                 const FleetShape& shape);

}  // namespace gossamer::sparse_engine
