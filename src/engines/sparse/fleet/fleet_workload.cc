// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/run/steps_together.h"
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

namespace {

bool rise(const google::protobuf::RepeatedField<std::uint64_t>& numbers) {
  return std::ranges::adjacent_find(numbers, std::greater_equal()) == numbers.end();
}

}  // namespace

// Nothing stands there twice, so a report is not longer than what it says.
bool FleetWorkload::readable(const std::string& report) const {
  constexpr int kMostSnapshots = 2;
  sparse_fleet::Report parsed;
  if (!parsed.ParseFromString(report) || parsed.copies_size() > kMostSnapshots) return false;
  if (parsed.has_part() && (!rise(parsed.part().shards()) || !read_part(parsed.part(), shape_))) return false;
  if (parsed.copies_size() == kMostSnapshots && parsed.copies(0).step() > parsed.copies(1).step())
    return false;
  return std::ranges::all_of(parsed.copies(), [this](const sparse_fleet::Copies& copies) {
    return rise(copies.pieces()) && read_pieces(copies.pieces(), shape_).has_value();
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

// A member that holds a part knows of a snapshot that all have stored, and may have stored the next one.
struct Snapshots {
  std::uint64_t known = 0;
  std::uint64_t stored = 0;
};

Snapshots snapshots_of(const sparse_fleet::Report& report, StepNumber start) {
  if (report.copies().empty()) return {.known = start.value, .stored = start.value};
  return {.known = report.copies().begin()->step(), .stored = report.copies().rbegin()->step()};
}

// The steps of available copies, the newest first. The newest is the last step that all holders of a part
// have stored: a member that has forgotten older copies knows that. The step before counts, too, while no
// member has forgotten it. Never is it a step that some member has forgotten: its log begins later.
std::vector<StepNumber> bases_of(const Reports& reports, StepNumber start) {
  std::optional<std::uint64_t> stored;
  std::uint64_t known = start.value;
  for (const auto& [node, report] : reports) {
    if (!report.has_part()) continue;
    const Snapshots own = snapshots_of(report, start);
    stored = std::min(stored.value_or(own.stored), own.stored);
    known = std::max(known, own.known);
  }
  if (stored && known < *stored) return {StepNumber(*stored), StepNumber(known)};
  return {StepNumber(known)};
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

// Whether it fits to a fleet where `all` is the newest snapshot that is known to be stored by all.
bool fits(const Snapshots& own, std::uint64_t all) {
  return own.known == all || (own.known < all && own.stored == all);
}

// The members whose snapshots do not fit to those of more than half. Where two snapshots have as many on
// their side, nobody can tell who is wrong.
std::set<NodeId> of_other_snapshots(const std::map<NodeId, Snapshots>& snapshots) {
  std::size_t most = 0;
  std::set<std::uint64_t> believed;
  for (const auto& [node, one] : snapshots) {
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(snapshots, [&](const auto& other) { return fits(other.second, one.known); }));
    if (count > most) believed.clear();
    most = std::max(most, count);
    if (count == most) believed.insert(one.known);
  }
  std::set<NodeId> odd;
  if (believed.size() != 1 || 2 * most <= snapshots.size()) return odd;
  for (const auto& [node, one] : snapshots) {
    if (!fits(one, *believed.begin())) odd.insert(node);
  }
  return odd;
}

}  // namespace

// What no member can report, whatever others do. A part comes from an installed decision, and the run begins
// and ends somewhere.
bool FleetWorkload::possible(const sparse_fleet::Report& report, const membership::Frozen& said) const {
  if (!report.has_part()) return true;
  const auto of_run = [this](std::uint64_t step) {
    return step >= options_.start.value && (!options_.steps || step <= *options_.steps);
  };
  return said.installed() != 0 && of_run(report.applied()) &&
         std::ranges::all_of(report.copies(), [&](const auto& copies) {
           return of_run(copies.step()) && copies.step() <= report.applied();
         });
}

std::set<NodeId> FleetWorkload::contradicting(const std::map<NodeId, membership::Frozen>& at_rest) const {
  const Reports reports = reports_of(at_rest);
  std::set<NodeId> odd;
  std::map<NodeId, std::uint64_t> applied;
  for (const auto& [node, report] : reports) {
    if (!possible(report, at_rest.at(node))) {
      odd.insert(node);
    } else if (report.has_part()) {
      applied[node] = report.applied();
    }
  }
  odd.merge(engine::not_together(applied));
  std::map<NodeId, Snapshots> snapshots;
  for (const auto& [node, steps] : applied) {
    if (!odd.contains(node)) snapshots[node] = snapshots_of(reports.at(node), options_.start);
  }
  odd.merge(of_other_snapshots(snapshots));
  return odd;
}

cluster::Decision FleetWorkload::decide(const cluster::Rest& rest) {
  const std::vector<StepNumber> bases = bases_of(reports_of(rest.reports), options_.start);
  Layout layout = layout_of(rest, bases.front());
  if (!recoverable(layout)) layout = layout_of(rest, bases.back());
  cluster::Decision result{.bytes = write_layout(layout), .committed = layout.resume};
  const bool behind = rest.committed && layout.resume < *rest.committed;
  if (behind || !recoverable(layout)) {
    result.lost = true;
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
