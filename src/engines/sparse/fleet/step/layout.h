// SPDX-License-Identifier: Apache-2.0
//
// Layout: which member of a run holds which part of the network (docs/protocols/sparse-step.md). The
// coordinator places output shards; columns and units follow. They are runs of blocks, in the order of the
// nodes. A run is as long as the member's fraction of the shards. Members that stay keep what they have.
// Their neighbours take what others leave.
//
// Thread rule: plain values and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/compute.h"
#include "learn/sparse/network/network_pieces.h"
#include "learn/sparse/network/network_shape.h"

namespace gossamer::sparse_engine {

// The network that a run trains, and how it is cut.
struct FleetShape {
  sparse::NetworkShape network;
  unsigned shard_shift = 0;  // output shards of 2^shift rows

  [[nodiscard]] std::size_t layers() const { return 1 + network.dense.size(); }
  // For a hidden layer: the columns that can be held, and how many go together. No member holds a block that
  // is padding alone, which stays zero.
  [[nodiscard]] std::size_t width(std::size_t layer) const {
    const std::size_t columns = layer == 0 ? network.hidden : network.dense[layer - 1];
    return (columns + block(layer) - 1) / block(layer) * block(layer);
  }
  [[nodiscard]] std::size_t block(std::size_t layer) const {
    return layer == 0 ? sparse::kColumnBlock : sparse::kUnitBlock;
  }
  [[nodiscard]] std::size_t shards() const {
    return (network.labels + (std::size_t{1} << shard_shift) - 1) >> shard_shift;
  }
};

// The distance from one row of a hidden layer to the next.
[[nodiscard]] inline std::size_t hidden_stride(const FleetShape& shape, std::size_t layer) {
  return sparse::row_stride(layer == 0 ? shape.network.hidden : shape.network.dense[layer - 1]);
}

// What is copied as one: a block of columns or units, or an output shard.
struct PieceId {
  std::size_t layer = 0;  // shape.layers(): the output
  std::size_t index = 0;
  auto operator<=>(const PieceId&) const = default;
};
using Pieces = std::set<PieceId>;
[[nodiscard]] bool is_piece(const FleetShape& shape, PieceId id);
[[nodiscard]] sparse::NetworkPiece piece_of(const FleetShape& shape, PieceId id);
// The number of pieces in the network.
[[nodiscard]] std::size_t all_pieces(const FleetShape& shape);
[[nodiscard]] Pieces pieces_of(const FleetShape& shape, const sparse::NetworkPart& part);
// The pieces of a run of columns or units of a layer. The padding on a node that holds everything is no
// piece.
[[nodiscard]] Pieces pieces_of(const FleetShape& shape, std::size_t layer, const host::Range& columns);

// Nothing of the network.
[[nodiscard]] sparse::NetworkPart no_part(const FleetShape& shape);
// A part with this piece alone. A piece of the output layer is one shard.
[[nodiscard]] sparse::NetworkPart part_of(const FleetShape& shape, const sparse::NetworkPiece& piece);
// For a hidden layer: the columns of h that the part holds.
[[nodiscard]] host::Range& columns_of(sparse::NetworkPart& part, std::size_t layer);
[[nodiscard]] const host::Range& columns_of(const sparse::NetworkPart& part, std::size_t layer);
[[nodiscard]] std::set<std::size_t> shards_of(const sparse::NetworkPart& part);
[[nodiscard]] bool holds_nothing(const sparse::NetworkPart& part);
[[nodiscard]] sparse::NetworkPart with_shards(sparse::NetworkPart part, const FleetShape& shape,
                                              const std::set<std::size_t>& shards);

// Where the columns of one layer lie, by node. `before`: where they lay before; empty if no member had any.
// `weights`: how much work each member does. The runs together are the whole layer, and none overlaps
// another.
//
// Members that stay keep what they have, and their neighbours take what others leave. All runs are cut anew
// if a member would then be more than a quarter plus a block above its work share. Two members with the same
// columns are another reason to do so. The order stays, with new members last.
//
// Requires weights that are not all zero. A member without weight gets nothing.
using Cut = std::map<NodeId, host::Range>;
[[nodiscard]] Cut recut(std::size_t width, std::size_t block, const Cut& before,
                        const std::map<NodeId, std::size_t>& weights);

// The contents of a decision. By rank, in the order of nodes: the members that hold something afterwards or
// did before.
struct LayoutMember {
  NodeId node;
  std::optional<sparse::NetworkPart> before;  // what it holds at rest
  StepNumber applied;                         // all steps below it
  sparse::NetworkPart after;
  Pieces copies_before;  // of pieces, as of Layout::base
  Pieces copies_after;   // pieces that it keeps from the next snapshot on; never its own
};
struct Layout {
  StepNumber resume;
  StepNumber base;  // logs begin there
  std::vector<LayoutMember> members;

  [[nodiscard]] std::optional<std::size_t> rank_of(NodeId node) const;
};
// kBadData for a layout that no workload decides. In such a layout members are out of order or more than a
// step apart, or a piece has two holders or none.
[[nodiscard]] Result<Layout> read_layout(const std::string& decision, const FleetShape& shape);
[[nodiscard]] std::string write_layout(const Layout& layout);

// Decides which members keep copies of which pieces. Every piece has `copies` keepers beside its holder, if
// there are so many members. The keepers are chosen in this order:
//
// 1. for columns, the member that would hold them next, so that a copy need not travel when they are lost;
// 2. members that have a copy already;
// 3. the others, evenly.
//
// A member that holds nothing may be about to leave. It keeps only copies that no other member can keep.
void assign_copies(Layout& layout, const FleetShape& shape, std::size_t copies);

}  // namespace gossamer::sparse_engine
