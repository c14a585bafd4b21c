// SPDX-License-Identifier: Apache-2.0
//
// Vault: the copies that a member keeps of other members' pieces of the network, all as of one step
// (docs/protocols/sparse-step.md, "Snapshots"). A snapshot changes them all at once. The holder of a piece
// sends the rows that have changed since the last snapshot, or, to a new keeper, since the initial values.
// Initial values are not kept: all members can make them, and few copies are ever needed. Rows that no step
// has changed are zeros. Whole pages of them take no memory.
//
// Thread rule: the thread that computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/block_pool.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/network/network_pieces.h"

namespace gossamer::sparse_engine {

// The network from which each piece is taken.
using PieceSources = std::map<PieceId, sparse::Network*>;

// What `keeper` is sent of each of its pieces that is among the sources. If it has the piece as of step
// `since`, it is sent what has changed since. Otherwise it is sent all that is not initial.
struct DeltaRequest {
  const Pieces& keeps;  // from this snapshot on
  const Pieces& has;    // as of `since`
  StepNumber since;
  StepNumber step;
  const BlockPool& memory;
};
// What a keeper is to get from one holder.
struct DeltaExpected {
  const Pieces& pieces;  // these, and no others
  StepNumber step;       // of the snapshot
};
// The delta of the state before `step`. kFailed: a row of it is beyond all bounds, so the network has
// diverged.
[[nodiscard]] Result<Slices> make_delta(const FleetJob& job, const PieceSources& sources,
                                        const DeltaRequest& request);

// What is wrong with a member's copy of a piece as of a step. Rows that no step has changed are zeros.
[[nodiscard]] std::optional<sparse::RowFault> fault_of(const FleetJob& job, const Slices& copy,
                                                       const sparse::NetworkPiece& piece, StepNumber step);

class Vault {
 public:
  // Borrows the job for its life.
  explicit Vault(const FleetJob& job) : job_(job) {}

  // kBadData: no honest holder has sent this delta. It has other pieces, does not fit what is here, or has
  // rows that cannot be.
  [[nodiscard]] Result<void> check(const Slices& delta, const DeltaExpected& expected) const;
  // The most bytes of a delta of these pieces.
  [[nodiscard]] static std::uint64_t most_bytes(const FleetJob& job, const Pieces& pieces);
  // Takes the deltas, by sender. Afterwards the vault has the pieces of the deltas, as of `step`, and no
  // others. But if its pieces are as of that step already, they stay. kBadData, and nothing has changed, if a
  // delta does not fit what is here.
  [[nodiscard]] Result<void> apply(StepNumber step, std::span<const Slices> deltas);
  [[nodiscard]] bool has(PieceId piece) const { return pieces_.contains(piece); }
  // The copy, piece_bytes() of it, with zeros for rows that have their initial values. Requires that the
  // piece is here.
  [[nodiscard]] std::span<const std::byte> bytes(PieceId piece) const { return pieces_.at(piece).span(); }

 private:
  using Copies = std::map<PieceId, AlignedArray<std::byte>>;
  // What a delta says about one piece.
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

}  // namespace gossamer::sparse_engine
