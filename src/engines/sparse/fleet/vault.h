// SPDX-License-Identifier: Apache-2.0
//
// Vault: the copies that a member keeps of others' pieces of the network, all as of one step
// (docs/protocols/sparse-step.md, "Snapshots"). A snapshot changes them all at once: of each piece its holder
// sends the rows that have changed since the last one, or, for a new keeper, since the initial values.
// Initial values are not kept, for everybody can make them, and few copies are ever needed: rows that no step
// has changed are zeros, and take no memory where whole pages are.
//
// Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/block_pool.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/fleet_job.h"
#include "engines/sparse/fleet/layout.h"
#include "learn/sparse/network.h"

namespace gossamer::engine {

// Where a piece is taken from.
using PieceSources = std::map<PieceId, sparse::Network*>;

// What `keeper` is sent: of each of its pieces that is among the sources, what has changed since step `since`
// if it has the piece as of then, otherwise all that is not initial.
struct DeltaRequest {
  const Pieces& keeps;  // from this snapshot on
  const Pieces& has;    // as of `since`
  StepNumber since;
  const BlockPool& memory;
};
[[nodiscard]] Slices make_delta(const FleetJob& job, const PieceSources& sources,
                                const DeltaRequest& request);

class Vault {
 public:
  // Borrows the job for its life.
  explicit Vault(const FleetJob& job) : job_(job) {}

  // By sender. Afterwards it has the pieces that were in the deltas, as of `step`, and no others; but those
  // that are here already as of that step stay. kBadData, and nothing has changed, for what is no delta to
  // what is here.
  [[nodiscard]] Result<void> apply(StepNumber step, std::span<const Slices> deltas);
  [[nodiscard]] bool has(PieceId piece) const { return pieces_.contains(piece); }
  // piece_bytes() of it, zeros for rows with their initial values. Requires that it is here.
  [[nodiscard]] std::span<const std::byte> bytes(PieceId piece) const { return pieces_.at(piece).span(); }

 private:
  using Copies = std::map<PieceId, AlignedArray<std::byte>>;
  // What a delta says of one piece.
  struct Change {
    PieceId id;
    bool from_initial = false;
    std::vector<std::uint32_t> numbers;
    Slices rows;
  };
  [[nodiscard]] Result<void> parse(SliceReader delta, std::vector<Change>& changes) const;

  const FleetJob& job_;
  StepNumber step_;
  Copies pieces_;
};

}  // namespace gossamer::engine
