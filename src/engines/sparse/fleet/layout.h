// SPDX-License-Identifier: Apache-2.0
//
// Layout: which member of a run holds which part of the network (docs/protocols/sparse-step.md). Output
// shards are placed by the coordinator; columns and units follow: runs of blocks, in the order of the nodes,
// as long as the member's share of the shards. Whoever stays keeps what it has; what others leave goes to
// neighbours.
//
// Thread rule: plain values and functions.
#pragma once

#include <gossamer/sparse_fleet.pb.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "host/api/compute.h"
#include "learn/sparse/network_pieces.h"
#include "learn/sparse/network_shape.h"

namespace gossamer::engine {

// The network that a run trains, and how it is cut.
struct FleetShape {
  sparse::NetworkShape network;
  unsigned shard_shift = 0;  // output shards of 2^shift rows

  [[nodiscard]] std::size_t layers() const { return 1 + network.dense.size(); }
  // Of a hidden layer: the columns that can be held, and of how many at once. Nobody holds a block that has
  // padding alone, which stays zero.
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

// From one row of a hidden layer to the next.
[[nodiscard]] inline std::size_t hidden_stride(const FleetShape& shape, std::size_t layer) {
  return sparse::row_stride(layer == 0 ? shape.network.hidden : shape.network.dense[layer - 1]);
}

// What is kept a copy of as one: a block of columns or units, or an output shard.
struct PieceId {
  std::size_t layer = 0;  // shape.layers(): of the output
  std::size_t index = 0;
  auto operator<=>(const PieceId&) const = default;
};
using Pieces = std::set<PieceId>;
[[nodiscard]] bool is_piece(const FleetShape& shape, PieceId id);
[[nodiscard]] sparse::NetworkPiece piece_of(const FleetShape& shape, PieceId id);
// How many there are.
[[nodiscard]] std::size_t all_pieces(const FleetShape& shape);
[[nodiscard]] Pieces pieces_of(const FleetShape& shape, const sparse::NetworkPart& part);
// Of a run of columns or units of a layer; the padding of a node that holds everything is none.
[[nodiscard]] Pieces pieces_of(const FleetShape& shape, std::size_t layer, const host::Range& columns);

// Nothing of the network.
[[nodiscard]] sparse::NetworkPart no_part(const FleetShape& shape);
// The piece alone; of the output layer one shard.
[[nodiscard]] sparse::NetworkPart part_of(const FleetShape& shape, const sparse::NetworkPiece& piece);
// Of a hidden layer: what it holds of the columns of h.
[[nodiscard]] host::Range& columns_of(sparse::NetworkPart& part, std::size_t layer);
[[nodiscard]] const host::Range& columns_of(const sparse::NetworkPart& part, std::size_t layer);
[[nodiscard]] std::set<std::size_t> shards_of(const sparse::NetworkPart& part);
[[nodiscard]] bool holds_nothing(const sparse::NetworkPart& part);
[[nodiscard]] sparse::NetworkPart with_shards(sparse::NetworkPart part, const FleetShape& shape,
                                              const std::set<std::size_t>& shards);

// By node. Where the columns of one layer lie, given who had which before (nothing: nobody had any) and how
// much each is to do; the runs together are all of the layer, and none overlaps another. Who stays keeps what
// it has, and what others leave goes to neighbours, unless somebody would then have a block more than a
// quarter above its share, or two have the same: then all runs are cut anew, in the same order, new members
// last. Requires weights that are not all zero; whoever weighs nothing gets nothing.
using Cut = std::map<NodeId, host::Range>;
[[nodiscard]] Cut recut(std::size_t width, std::size_t block, const Cut& before,
                        const std::map<NodeId, std::size_t>& weights);

void write_part(const sparse::NetworkPart& part, sparse_fleet::Part& out);
// Nothing if it is no part of such a network.
[[nodiscard]] std::optional<sparse::NetworkPart> read_part(const sparse_fleet::Part& part,
                                                           const FleetShape& shape);

// What a decision says, by rank: the members that hold something afterwards or did before, by node.
struct LayoutMember {
  NodeId node;
  std::optional<sparse::NetworkPart> before;  // what it holds at rest
  StepNumber applied;                         // all steps below it
  sparse::NetworkPart after;
  Pieces copies_before;  // of pieces, as of Layout::base
  Pieces copies_after;   // that it keeps from the next snapshot on; never of its own
};
struct Layout {
  StepNumber resume;
  StepNumber base;  // logs begin there
  std::vector<LayoutMember> members;

  [[nodiscard]] std::optional<std::size_t> rank_of(NodeId node) const;
};
// kBadData for what no workload decides: members out of order, pieces that two are to hold or nobody, members
// that are more than a step apart.
[[nodiscard]] Result<Layout> read_layout(const std::string& decision, const FleetShape& shape);
[[nodiscard]] std::string write_layout(const Layout& layout);

// As messages have them. Nothing if one is no piece of the network.
void write_pieces(const Pieces& pieces, google::protobuf::RepeatedField<std::uint64_t>& out);
[[nodiscard]] std::optional<Pieces> read_pieces(const google::protobuf::RepeatedField<std::uint64_t>& pieces,
                                                const FleetShape& shape);

// Who keeps a copy of what: every piece has `copies` keepers beside its holder, if there are so many members;
// of columns whoever would hold them next, so that a copy need not travel when they are lost; then those that
// have one already; the others are spread evenly. Who holds nothing, and may be about to
// leave, keeps only what nobody else can.
void assign_copies(Layout& layout, const FleetShape& shape, std::size_t copies);

}  // namespace gossamer::engine
