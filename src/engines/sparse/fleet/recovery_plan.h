// SPDX-License-Identifier: Apache-2.0
//
// RecoveryPlan: what members do before they go on with a new layout (docs/protocols/sparse-step.md, "Nothing
// is lost"). The same at all of them: it follows from the layout alone.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "engines/sparse/fleet/layout.h"
#include "learn/sparse/network_pieces.h"

namespace gossamer::engine {

struct RecoveryPlan {
  // What nobody holds any more, computed anew by the member of `rank` from a copy as of `base`, or from its
  // initial values if `base` is 0.
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
  // Whose columns of dh of a hidden layer are needed, of the steps from `begin` to resume.
  struct Want {
    std::size_t rank;
    std::size_t layer;
    host::Range columns;
    StepNumber begin;
  };
  // A piece that changes hands between two that live.
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
  bool snapshot = false;  // before they move
  // By rank: what it has a copy of after that snapshot. Beside what it keeps from then on, what moves to it:
  // its recovery may be cut short when whoever gave it away has gone on.
  std::vector<Pieces> keeps;
  std::vector<bool> behind;  // by rank: it has to apply the step before `resume`
  // Who needs the log of the steps from `base` to `resume`, and the rank that gives it.
  std::vector<std::size_t> without_log;
  std::size_t log_donor = 0;
};

[[nodiscard]] RecoveryPlan plan_recovery(const Layout& layout, const FleetShape& shape);

}  // namespace gossamer::engine
