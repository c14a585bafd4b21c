// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"

namespace gossamer::engine {

std::vector<placement::Thing> FleetWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::uint64_t shard = 0; shard < shape_.shards(); ++shard)
    things.push_back({.id = placement::ThingId(shard), .bytes = shard_bytes_, .work = 1});
  return things;
}

std::vector<cluster::TrackId> FleetWorkload::tracks() const {
  std::vector<cluster::TrackId> tracks;
  for (std::uint64_t shard = 0; shard < shape_.shards(); ++shard) tracks.emplace_back(shard);
  return tracks;
}

bool FleetWorkload::readable(const std::string& report) const {
  sparse_fleet::Report parsed;
  if (!parsed.ParseFromString(report)) return false;
  return !parsed.has_part() || read_part(parsed.part(), shape_).has_value();
}

Layout FleetWorkload::layout_of(const cluster::Rest& rest) const {
  std::map<NodeId, std::set<std::size_t>> shards;
  std::map<NodeId, std::size_t> weights;
  for (const auto& [thing, node] : rest.after) shards[node].insert(thing.value);
  Layout layout;
  for (const auto& [node, frozen] : rest.reports) {
    sparse_fleet::Report report;
    CHECK(report.ParseFromString(frozen.report()), node.value);
    LayoutMember& member = layout.members.emplace_back();
    member.node = node;
    member.applied = StepNumber(report.applied());
    if (report.has_part()) member.before = read_part(report.part(), shape_);
    if (member.before) layout.resume = std::max(layout.resume, member.applied);
    member.after = with_shards(no_part(shape_), shape_, shards[node]);
    weights[node] = shards[node].size();
  }
  for (std::size_t layer = 0; layer < shape_.layers(); ++layer) {
    Cut before;
    for (const LayoutMember& member : layout.members) {
      if (member.before) before[member.node] = columns_of(*member.before, layer);
    }
    const Cut after = recut(shape_.width(layer), shape_.block(layer), before, weights);
    for (LayoutMember& member : layout.members) {
      const auto own = after.find(member.node);
      if (own != after.end()) columns_of(member.after, layer) = own->second;
    }
  }
  return layout;
}

cluster::Decision FleetWorkload::decide(const cluster::Rest& rest) {
  const Layout layout = layout_of(rest);
  sparse_fleet::Decision decision;
  decision.set_resume(layout.resume.value);
  for (const LayoutMember& member : layout.members) {
    sparse_fleet::Decision::Member& out = *decision.add_members();
    out.set_node(member.node.value);
    out.set_applied(member.applied.value);
    if (member.before) write_part(*member.before, *out.mutable_before());
    write_part(member.after, *out.mutable_after());
  }
  cluster::Decision result{.bytes = decision.SerializeAsString(), .committed = layout.resume};
  if (rest.committed && layout.resume < *rest.committed) {
    result.failure = Error{.where = fmt::format("step {}", rest.committed->value),
                           .what = "what the run has learnt is lost: all that held it are gone",
                           .got = fmt::format("members that know {} steps", layout.resume.value),
                           .expected = fmt::format("one that knows {}", rest.committed->value),
                           .fix = "begin the run again"};
    result.committed = rest.committed;
  }
  return result;
}

}  // namespace gossamer::engine
