// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace gossamer::engine {
namespace {

using host::Range;
using sparse::NetworkPart;

std::size_t size_of(const Range& range) { return range.end - range.begin; }

void write(const Range& range, sparse_fleet::Run& out) {
  out.set_begin(range.begin);
  out.set_end(range.end);
}

std::optional<Range> read(const sparse_fleet::Run& run, std::size_t width, std::size_t block) {
  if (run.begin() > run.end() || run.end() > width) return std::nullopt;
  if (run.begin() % block != 0 || run.end() % block != 0) return std::nullopt;
  return Range{run.begin(), run.end()};
}

// Runs by node, as long as their weights, to the block.
Cut cut_anew(std::size_t width, std::size_t block, const std::map<NodeId, std::size_t>& weights) {
  std::size_t whole = 0;
  for (const auto& [node, weight] : weights) whole += weight;
  CHECK(whole > 0);
  const std::size_t blocks = width / block;
  Cut cut;
  std::size_t before = 0;
  for (const auto& [node, weight] : weights) {
    const auto place = [&](std::size_t until) { return (blocks * until + whole / 2) / whole * block; };
    const Range range{place(before), place(before + weight)};
    before += weight;
    if (size_of(range) > 0) cut[node] = range;
  }
  return cut;
}

using Owned = std::pair<NodeId, Range>;

// Two neighbours share what lies between them, so that the busier of the two has as little as can be.
std::size_t boundary(const Owned& left, const Owned& right, std::size_t block,
                     const std::map<NodeId, std::size_t>& weights) {
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

NetworkPart no_part(const FleetShape& shape) {
  NetworkPart part = {.columns = {}, .units = std::vector<Range>(shape.network.dense.size()), .rows = {}};
  return with_shards(std::move(part), shape, {});
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
  if (stay.empty()) return cut_anew(width, block, weights);
  std::ranges::sort(stay, {}, [](const Owned& one) { return one.second.begin; });
  stay.front().second.begin = 0;
  stay.back().second.end = width;
  for (std::size_t i = 0; i + 1 < stay.size(); ++i) {
    CHECK(stay[i].second.end <= stay[i + 1].second.begin, stay[i].second.end, stay[i + 1].second.begin);
    const std::size_t at = boundary(stay[i], stay[i + 1], block, weights);
    stay[i].second.end = at;
    stay[i + 1].second.begin = at;
  }
  return {stay.begin(), stay.end()};
}

void write_part(const NetworkPart& part, sparse_fleet::Part& out) {
  write(part.columns, *out.mutable_columns());
  for (const Range& units : part.units) write(units, *out.add_units());
  for (const std::size_t shard : shards_of(part)) out.add_shards(shard);
}

std::optional<NetworkPart> read_part(const sparse_fleet::Part& part, const FleetShape& shape) {
  NetworkPart out = no_part(shape);
  if (part.units_size() != static_cast<int>(out.units.size())) return std::nullopt;
  for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
    const sparse_fleet::Run& run = layer == 0 ? part.columns() : part.units(static_cast<int>(layer) - 1);
    const auto range = read(run, shape.width(layer), shape.block(layer));
    if (!range) return std::nullopt;
    columns_of(out, layer) = *range;
  }
  for (const std::uint64_t shard : part.shards()) {
    if (shard >= shape.shards()) return std::nullopt;
    out.rows.add(shard);
  }
  return out;
}

std::optional<std::size_t> Layout::rank_of(NodeId node) const {
  const auto found = std::ranges::find(members, node, &LayoutMember::node);
  if (found == members.end()) return std::nullopt;
  return static_cast<std::size_t>(found - members.begin());
}

Result<Layout> read_layout(const std::string& decision, const FleetShape& shape) {
  const Error unreadable{.kind = ErrorKind::kBadData,
                         .what = "the coordinator decided what is no layout of this network",
                         .expected = "parts of the network that this node was told of",
                         .fix = "look whether all nodes run the same version"};
  sparse_fleet::Decision read_decision;
  if (!read_decision.ParseFromString(decision)) return unreadable;
  Layout layout{.resume = StepNumber(read_decision.resume()), .members = {}};
  for (const sparse_fleet::Decision::Member& one : read_decision.members()) {
    LayoutMember& member = layout.members.emplace_back();
    member.node = NodeId(one.node());
    member.applied = StepNumber(one.applied());
    if (one.has_before()) {
      member.before = read_part(one.before(), shape);
      if (!member.before) return unreadable;
    }
    auto after = read_part(one.after(), shape);
    if (!after) return unreadable;
    member.after = std::move(*after);
  }
  return layout;
}

}  // namespace gossamer::engine
