// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {

std::vector<placement::Thing> FleetWorkload::things() const {
  std::vector<placement::Thing> things;
  for (std::uint64_t shard = 0; shard < shape_.shards(); ++shard)
    things.push_back({.id = placement::ThingId(shard), .bytes = options_.shard_bytes, .work = 1});
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
  if (parsed.has_part() && !read_part(parsed.part(), shape_)) return false;
  return std::ranges::all_of(parsed.copies(), [this](const sparse_fleet::Copies& copies) {
    return read_pieces(copies.pieces(), shape_).has_value();
  });
}

namespace {

using Reports = std::map<NodeId, sparse_fleet::Report>;

Reports reports_of(const std::map<NodeId, membership::Frozen>& at_rest) {
  Reports reports;
  for (const auto& [node, frozen] : at_rest)
    CHECK(reports[node].ParseFromString(frozen.report()), node.value);
  return reports;
}

// The steps of available copies, the newest first. The newest is the last step that all holders of a part
// have stored: a member that has forgotten older copies knows that. The step before counts, too, while no
// member has forgotten it.
std::vector<StepNumber> bases_of(const Reports& reports, StepNumber start) {
  std::optional<std::uint64_t> newest;
  std::uint64_t kept = 0;
  for (const auto& [node, report] : reports) {
    if (!report.has_part()) continue;
    std::uint64_t stored = 0;
    for (const sparse_fleet::Copies& copies : report.copies()) stored = std::max(stored, copies.step());
    newest = std::min(newest.value_or(stored), stored);
    if (report.copies_size() > 0) kept = std::max(kept, report.copies(0).step());
  }
  const std::uint64_t base = newest.value_or(start.value);
  if (kept < base) return {StepNumber(base), StepNumber(kept)};
  return {StepNumber(base)};
}

}  // namespace

Layout FleetWorkload::layout_of(const cluster::Rest& rest, StepNumber base) const {
  std::map<NodeId, std::set<std::size_t>> shards;
  std::map<NodeId, std::size_t> weights;
  for (const auto& [thing, node] : rest.after) shards[node].insert(thing.value);
  const Reports reports = reports_of(rest.reports);
  Layout layout{.resume = options_.start, .base = base, .members = {}};
  for (const auto& [node, report] : reports) {
    LayoutMember& member = layout.members.emplace_back();
    member.node = node;
    member.applied = StepNumber(report.applied());
    if (report.has_part()) member.before = read_part(report.part(), shape_);
    if (member.before) layout.resume = std::max(layout.resume, member.applied);
    for (const sparse_fleet::Copies& copies : report.copies()) {
      if (StepNumber(copies.step()) == layout.base)
        member.copies_before.merge(*read_pieces(copies.pieces(), shape_));
    }
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
  assign_copies(layout, shape_, options_.copies);
  return layout;
}

// Whether each needed piece is held or copied. All members can make the state that the run began with.
bool FleetWorkload::recoverable(const Layout& layout) const {
  if (layout.base == options_.start) return true;
  Pieces known;
  Pieces needed;
  for (const LayoutMember& member : layout.members) {
    if (member.before) known.merge(pieces_of(shape_, *member.before));
    known.insert(member.copies_before.begin(), member.copies_before.end());
    needed.merge(pieces_of(shape_, member.after));
  }
  return std::ranges::includes(known, needed);
}

namespace {

// Members apply a step only when all have begun it, and they begin it after the one before. So holders are a
// step apart at most. The middle one of them is believed, and the fewer of those that are a step before or
// behind it.
std::set<NodeId> not_together(const std::map<NodeId, std::uint64_t>& applied) {
  std::set<NodeId> odd;
  std::vector<std::uint64_t> sorted;
  for (const auto& [node, steps] : applied) sorted.push_back(steps);
  std::ranges::sort(sorted);
  if (sorted.empty() || sorted.back() - sorted.front() <= 1) return odd;
  const std::uint64_t middle = sorted[(sorted.size() - 1) / 2];
  const auto before =
      std::ranges::count_if(sorted, [&](auto one) { return one < middle && middle - one == 1; });
  const auto behind =
      std::ranges::count_if(sorted, [&](auto one) { return one > middle && one - middle == 1; });
  for (const auto& [node, steps] : applied) {
    const bool far = steps < middle ? middle - steps > 1 : steps - middle > 1;
    const bool fewer = steps != middle && before > 0 && behind > 0 && (steps < middle) == (before < behind);
    if (far || fewer) odd.insert(node);
  }
  return odd;
}

}  // namespace

// Nor can a copy be of a step that no member has come to.
std::set<NodeId> FleetWorkload::contradicting(const std::map<NodeId, membership::Frozen>& at_rest) const {
  const Reports reports = reports_of(at_rest);
  std::map<NodeId, std::uint64_t> applied;
  for (const auto& [node, report] : reports) {
    if (report.has_part()) applied[node] = report.applied();
  }
  std::set<NodeId> odd = not_together(applied);
  std::optional<std::uint64_t> most;
  for (const auto& [node, steps] : applied) {
    if (!odd.contains(node)) most = std::max(most.value_or(steps), steps);
  }
  for (const auto& [node, report] : reports) {
    const bool later = report.has_part() && std::ranges::any_of(report.copies(), [&](const auto& copies) {
                         return most && copies.step() > *most;
                       });
    if (later) odd.insert(node);
  }
  return odd;
}

cluster::Decision FleetWorkload::decide(const cluster::Rest& rest) {
  const std::vector<StepNumber> bases = bases_of(reports_of(rest.reports), options_.start);
  Layout layout = layout_of(rest, bases.front());
  if (!recoverable(layout)) layout = layout_of(rest, bases.back());
  cluster::Decision result{.bytes = write_layout(layout), .committed = layout.resume};
  const bool behind = rest.committed && layout.resume < *rest.committed;
  if (behind || !recoverable(layout)) {
    result.failure =
        Error{.where = fmt::format("step {}", layout.resume.value),
              .what = "a part of what the run has learnt is lost: all that had it, or a copy of it, are gone",
              .got = fmt::format(
                  "{} members, {} of them with a part", layout.members.size(),
                  std::ranges::count_if(
                      layout.members, [](const LayoutMember& member) { return member.before.has_value(); })),
              .expected = "a copy of each part with those that are left",
              .fix = fmt::format(
                  "resume the run from its newest checkpoint; next time with cluster.copies={} if so many "
                  "nodes may "
                  "die at once; those that die a snapshot apart (cluster.snapshot_every) cost nothing",
                  options_.copies + 1)};
    if (behind) result.committed = rest.committed;
  }
  return result;
}

}  // namespace gossamer::sparse_engine
