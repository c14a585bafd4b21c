// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/layout.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace gossamer::sparse_engine {
namespace {

using host::Range;
using sparse::NetworkPart;

std::size_t size_of(const Range& range) { return range.end - range.begin; }

using Owned = std::pair<NodeId, Range>;
using Weights = std::map<NodeId, std::size_t>;

std::size_t sum_of(const Weights& weights) {
  std::size_t sum = 0;
  for (const auto& [node, weight] : weights) sum += weight;
  return sum;
}

// Cuts the width into runs in this order. Their lengths are as their weights, rounded to the block.
Cut cut_anew(std::size_t width, std::size_t block, const std::vector<NodeId>& order, const Weights& weights) {
  const std::size_t whole = sum_of(weights);
  CHECK(whole > 0);
  const std::size_t blocks = width / block;
  Cut cut;
  std::size_t before = 0;
  for (const NodeId node : order) {
    const auto place = [&](std::size_t until) { return (blocks * until + whole / 2) / whole * block; };
    const Range range{place(before), place(before + weights.at(node))};
    before += weights.at(node);
    if (size_of(range) > 0) cut[node] = range;
  }
  return cut;
}

// Whether two runs overlap. That is so if one member had finished a change, and another had not, when the
// next change came.
bool overlap(const std::vector<Owned>& cut) {
  return std::ranges::adjacent_find(
             cut, [](const Owned& a, const Owned& b) { return a.second.end > b.second.begin; }) != cut.end();
}

// Whether no member is more than a quarter plus a block above its work share.
bool balanced(const std::vector<Owned>& cut, std::size_t width, std::size_t block, const Weights& weights) {
  const std::size_t whole = sum_of(weights);
  return std::ranges::all_of(cut, [&](const Owned& one) {
    const std::size_t share = width * weights.at(one.first) / whole;
    return size_of(one.second) <= share + share / 4 + block;
  });
}

// Where two neighbours divide the columns between them, so that the busier of the two has as few as possible.
std::size_t boundary(const Owned& left, const Owned& right, std::size_t block, const Weights& weights) {
  std::size_t best = left.second.end;
  double least = -1;
  for (std::size_t at = left.second.end; at <= right.second.begin; at += block) {
    const auto load = [&](std::size_t columns, NodeId node) {
      return static_cast<double>(columns) / static_cast<double>(weights.at(node));
    };
    const double most =
        std::max(load(at - left.second.begin, left.first), load(right.second.end - at, right.first));
    if (least >= 0 && most >= least) continue;
    least = most;
    best = at;
  }
  return best;
}

}  // namespace

bool is_piece(const FleetShape& shape, PieceId id) {
  if (id.layer == shape.layers()) return id.index < shape.shards();
  return id.layer < shape.layers() && id.index < shape.width(id.layer) / shape.block(id.layer);
}

sparse::NetworkPiece piece_of(const FleetShape& shape, PieceId id) {
  if (id.layer == shape.layers()) {
    const sparse::HeldRows rows(shape.network.labels, shape.shard_shift);
    return {.layer = id.layer, .range = rows.rows_of(id.index)};
  }
  const std::size_t block = shape.block(id.layer);
  return {.layer = id.layer, .range = {id.index * block, (id.index + 1) * block}};
}

std::size_t all_pieces(const FleetShape& shape) {
  std::size_t pieces = shape.shards();
  for (std::size_t layer = 0; layer < shape.layers(); ++layer)
    pieces += shape.width(layer) / shape.block(layer);
  return pieces;
}

Pieces pieces_of(const FleetShape& shape, std::size_t layer, const Range& columns) {
  Pieces pieces;
  const std::size_t block = shape.block(layer);
  for (std::size_t at = columns.begin; at < std::min(columns.end, shape.width(layer)); at += block)
    pieces.insert({.layer = layer, .index = at / block});
  return pieces;
}

Pieces pieces_of(const FleetShape& shape, const NetworkPart& part) {
  Pieces pieces;
  for (std::size_t layer = 0; layer < shape.layers(); ++layer)
    pieces.merge(pieces_of(shape, layer, columns_of(part, layer)));
  for (const std::size_t shard : shards_of(part)) pieces.insert({.layer = shape.layers(), .index = shard});
  return pieces;
}

namespace {

// The member that gets lost columns (recut()), if neighbours have equal loads. The lower half of the holder's
// run goes to the member whose run lies before, the upper half to the member after it. At an edge all goes to
// the one neighbour.
std::optional<std::size_t> heir_of(const Layout& layout, const FleetShape& shape, PieceId piece,
                                   std::size_t holder) {
  if (piece.layer == shape.layers()) return std::nullopt;
  const Range& run = columns_of(layout.members[holder].after, piece.layer);
  std::optional<std::size_t> below;
  std::optional<std::size_t> above;
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
    const Range& other = columns_of(layout.members[rank].after, piece.layer);
    if (size_of(other) == 0) continue;
    if (other.end == run.begin) below = rank;
    if (other.begin == run.end) above = rank;
  }
  if (!below || !above) return below ? below : above;
  const Range columns = piece_of(shape, piece).range;
  return columns.begin + columns.end < run.begin + run.end ? below : above;
}

}  // namespace

void assign_copies(Layout& layout, const FleetShape& shape, std::size_t copies) {
  std::map<PieceId, std::size_t> holders;
  std::vector<std::size_t> keepers;
  std::vector<bool> idle;  // by rank
  for (std::size_t rank = 0; rank < layout.members.size(); ++rank) {
    LayoutMember& member = layout.members[rank];
    member.copies_after.clear();
    const Pieces own = pieces_of(shape, member.after);
    for (const PieceId& piece : own) holders[piece] = rank;
    keepers.push_back(rank);
    idle.push_back(own.empty());
  }
  for (const auto& [piece, holder] : holders) {
    // First the member that would need the piece next, then those that have a copy, then those that keep few.
    // Members that are about to leave come last.
    const auto heir = heir_of(layout, shape, piece, holder);
    std::ranges::stable_sort(keepers, {}, [&](std::size_t rank) {
      const LayoutMember& member = layout.members[rank];
      return std::tuple(bool{idle[rank]}, heir != rank, !member.copies_before.contains(piece),
                        member.copies_after.size());
    });
    std::size_t missing = copies;
    for (const std::size_t rank : keepers) {
      if (rank == holder || missing == 0) continue;
      layout.members[rank].copies_after.insert(piece);
      --missing;
    }
  }
}

bool holds_nothing(const NetworkPart& part) {
  for (std::size_t layer = 0; layer <= part.units.size(); ++layer) {
    if (columns_of(part, layer).begin != columns_of(part, layer).end) return false;
  }
  return shards_of(part).empty();
}

NetworkPart no_part(const FleetShape& shape) {
  NetworkPart part = {.columns = {}, .units = std::vector<Range>(shape.network.dense.size()), .rows = {}};
  return with_shards(std::move(part), shape, {});
}

NetworkPart part_of(const FleetShape& shape, const sparse::NetworkPiece& piece) {
  NetworkPart part = no_part(shape);
  if (piece.layer == shape.layers()) {
    part.rows.add(piece.range.begin >> shape.shard_shift);
  } else {
    columns_of(part, piece.layer) = piece.range;
  }
  return part;
}

Range& columns_of(NetworkPart& part, std::size_t layer) {
  return layer == 0 ? part.columns : part.units[layer - 1];
}

const Range& columns_of(const NetworkPart& part, std::size_t layer) {
  return layer == 0 ? part.columns : part.units[layer - 1];
}

std::set<std::size_t> shards_of(const NetworkPart& part) {
  std::set<std::size_t> shards;
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (part.rows.holds(shard)) shards.insert(shard);
  }
  return shards;
}

NetworkPart with_shards(NetworkPart part, const FleetShape& shape, const std::set<std::size_t>& shards) {
  part.rows = {shape.network.labels, shape.shard_shift};
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (!shards.contains(shard)) part.rows.drop(shard);
  }
  return part;
}

Cut recut(std::size_t width, std::size_t block, const Cut& before,
          const std::map<NodeId, std::size_t>& weights) {
  std::vector<Owned> stay;
  for (const auto& one : before) {
    const auto weight = weights.find(one.first);
    if (size_of(one.second) > 0 && weight != weights.end() && weight->second > 0) stay.emplace_back(one);
  }
  std::ranges::sort(stay, {}, [](const Owned& one) { return one.second.begin; });
  std::vector<NodeId> order;
  for (const Owned& one : stay) order.push_back(one.first);
  for (const auto& [node, weight] : weights) {
    if (std::ranges::count(order, node) == 0) order.push_back(node);
  }
  if (stay.empty() || overlap(stay)) return cut_anew(width, block, order, weights);
  stay.front().second.begin = 0;
  stay.back().second.end = width;
  for (std::size_t i = 0; i + 1 < stay.size(); ++i) {
    const std::size_t at = boundary(stay[i], stay[i + 1], block, weights);
    stay[i].second.end = at;
    stay[i + 1].second.begin = at;
  }
  if (!balanced(stay, width, block, weights)) return cut_anew(width, block, order, weights);
  return {stay.begin(), stay.end()};
}

std::optional<std::size_t> Layout::rank_of(NodeId node) const {
  const auto found = std::ranges::find(members, node, &LayoutMember::node);
  if (found == members.end()) return std::nullopt;
  return static_cast<std::size_t>(found - members.begin());
}

}  // namespace gossamer::sparse_engine
