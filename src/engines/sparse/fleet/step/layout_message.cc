// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/layout_message.h"

#include <utility>

namespace gossamer::sparse_engine {
namespace {

using host::Range;
using sparse::NetworkPart;

void write(const Range& range, sparse_fleet::Run& out) {
  out.set_begin(range.begin);
  out.set_end(range.end);
}

std::optional<Range> read(const sparse_fleet::Run& run, std::size_t width, std::size_t block) {
  if (run.begin() > run.end() || run.end() > width) return std::nullopt;
  if (run.begin() % block != 0 || run.end() % block != 0) return std::nullopt;
  return Range{run.begin(), run.end()};
}

// Whether each piece of the network is held once afterwards, and all members can be at the steps that they
// report.
bool sound(const Layout& layout, const FleetShape& shape) {
  Pieces held;
  std::size_t holdings = 0;
  NodeId last;
  for (const LayoutMember& member : layout.members) {
    if (member.node <= last) return false;
    last = member.node;
    const Pieces own = pieces_of(shape, member.after);
    holdings += own.size();
    held.insert(own.begin(), own.end());
    if (member.before && (member.applied > layout.resume || layout.resume.value - member.applied.value > 1))
      return false;
  }
  return layout.base <= layout.resume && holdings == held.size() && held.size() == all_pieces(shape);
}

}  // namespace

void write_pieces(const Pieces& pieces, google::protobuf::RepeatedField<std::uint64_t>& out) {
  for (const PieceId& one : pieces) out.Add(static_cast<std::uint64_t>(one.layer) << 32 | one.index);
}

std::optional<Pieces> read_pieces(const google::protobuf::RepeatedField<std::uint64_t>& pieces,
                                  const FleetShape& shape) {
  Pieces out;
  for (const std::uint64_t one : pieces) {
    const PieceId id{.layer = one >> 32, .index = one & 0xffffffff};
    if (!is_piece(shape, id)) return std::nullopt;
    out.insert(id);
  }
  return out;
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

Result<Layout> read_layout(const std::string& decision, const FleetShape& shape) {
  const Error unreadable{.kind = ErrorKind::kBadData,
                         .what = "the coordinator decided what is no layout of this network",
                         .expected = "parts of the network that this node was told of",
                         .fix = "look whether all nodes run the same version"};
  sparse_fleet::Decision read_decision;
  if (!read_decision.ParseFromString(decision)) return unreadable;
  Layout layout{
      .resume = StepNumber(read_decision.resume()), .base = StepNumber(read_decision.base()), .members = {}};
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
    auto copies_before = read_pieces(one.copies_before(), shape);
    auto copies_after = read_pieces(one.copies_after(), shape);
    if (!copies_before || !copies_after) return unreadable;
    member.copies_before = std::move(*copies_before);
    member.copies_after = std::move(*copies_after);
  }
  if (!sound(layout, shape)) return unreadable;
  return layout;
}

std::string write_layout(const Layout& layout) {
  sparse_fleet::Decision decision;
  decision.set_resume(layout.resume.value);
  decision.set_base(layout.base.value);
  for (const LayoutMember& member : layout.members) {
    sparse_fleet::Decision::Member& out = *decision.add_members();
    out.set_node(member.node.value);
    out.set_applied(member.applied.value);
    if (member.before) write_part(*member.before, *out.mutable_before());
    write_part(member.after, *out.mutable_after());
    write_pieces(member.copies_before, *out.mutable_copies_before());
    write_pieces(member.copies_after, *out.mutable_copies_after());
  }
  return decision.SerializeAsString();
}

}  // namespace gossamer::sparse_engine
