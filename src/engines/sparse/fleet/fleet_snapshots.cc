// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/probe.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/layout_message.h"

namespace gossamer::sparse_engine {

std::optional<FleetSnapshots::Snapshot> FleetSnapshots::take_up(const Layout& layout) {
  auto snapshot = std::exchange(snapshot_, std::nullopt);
  // A snapshot that this member stored counts if all members have stored it.
  if (!snapshot || !snapshot->stored || snapshot->step != layout.base) snapshot.reset();
  known_ = {.step = layout.base, .kept = {}};
  for (const LayoutMember& one : layout.members) known_.kept.push_back(one.copies_before);
  return snapshot;
}

bool FleetSnapshots::due(StepNumber step, const Layout& layout, const FleetJob& job) const {
  if (snapshot_ && snapshot_->step == step) return false;
  if (step > known_.step) return step == layout.resume || step.value % job.snapshot_every == 0;
  // There is a snapshot as of this step, but perhaps not all copies are where they should be.
  if (step == job.start || all_kept(layout)) return false;
  reached(job.probes, FleetProbe::kSameStepSnapshot);
  return true;
}

bool FleetSnapshots::all_kept(const Layout& layout) const {
  for (std::size_t rank = 0; rank < known_.kept.size(); ++rank) {
    if (!std::ranges::includes(known_.kept[rank], layout.members[rank].copies_after)) return false;
  }
  return true;
}

void FleetSnapshots::begin(StepNumber step, SnapshotPlan plan, std::size_t me) {
  CHECK(!snapshot_);
  snapshot_ = Snapshot{.step = step, .keeps = std::move(plan.keeps)};
  for (const Pieces& has : plan.held) {
    Pieces& gets = snapshot_->gets.emplace_back();
    std::ranges::set_intersection(has, snapshot_->keeps[me], std::inserter(gets, gets.end()));
  }
}

FleetSnapshots::Giving FleetSnapshots::cut(const std::vector<Slices>& deltas) {
  for (const Slices& delta : deltas) {
    snapshot_->sizes.push_back(total_bytes(delta));
    snapshot_->given.insert(snapshot_->given.end(), delta.begin(), delta.end());
  }
  const std::size_t members = snapshot_->keeps.size();
  return {.name = {.kind = ExchangeName::Kind::kSnapshot, .step = snapshot_->step, .round = kSizes},
          .operation = {.kind = cluster::OperationKind::kAllGather,
                        .parts = std::vector(members, members * sizeof(std::uint64_t)),
                        .from = {}},
          .given = {Slice::copy_of(std::as_bytes(std::span(snapshot_->sizes)))}};
}

FleetSnapshots::Giving FleetSnapshots::next(Part part) const {
  return {.name = {.kind = ExchangeName::Kind::kSnapshot, .step = snapshot_->step, .round = part},
          .operation = {},
          .given = {}};
}

std::variant<FleetSnapshots::Giving, FleetSnapshots::WrongGift> FleetSnapshots::sized(
    const std::vector<Slices>& got, const FleetJob& job, std::size_t me) {
  Giving deltas = next(kDeltas);
  deltas.operation = {.kind = cluster::OperationKind::kAllToAll, .parts = snapshot_->sizes, .from = {}};
  std::vector<std::uint64_t> sizes(got.size());
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    copy_front(got[rank], std::as_writable_bytes(std::span(sizes)));
    const std::uint64_t most = Vault::most_bytes(job, snapshot_->gets[rank]);
    if (sizes[me] > most) {
      return WrongGift{rank, Error{.kind = ErrorKind::kBadData,
                                   .where = "a snapshot",
                                   .what = "a member would give more than it holds",
                                   .got = fmt::format("{} bytes", sizes[me]),
                                   .expected = fmt::format("at most {}", most),
                                   .fix = "look whether all nodes run the same version"}};
    }
    deltas.operation.from.push_back(sizes[me]);
  }
  deltas.given = std::move(snapshot_->given);
  return deltas;
}

FleetSnapshots::Giving FleetSnapshots::store() {
  snapshot_->stored = true;
  Giving stored = next(kStored);
  stored.operation = {.kind = cluster::OperationKind::kAllGather,
                      .parts = std::vector<std::uint64_t>(snapshot_->keeps.size(), 1),
                      .from = {}};
  stored.given = {Slice::of(std::string(1, '\0'))};
  return stored;
}

FleetSnapshots::Snapshot FleetSnapshots::complete() {
  Snapshot snapshot = *std::exchange(snapshot_, std::nullopt);
  known_ = {.step = snapshot.step, .kept = snapshot.keeps};
  return snapshot;
}

std::vector<std::uint64_t> FleetSnapshots::shards_kept(std::size_t rank, const FleetShape& shape) const {
  std::vector<std::uint64_t> shards;
  for (const PieceId& piece : kept_by(rank)) {
    if (piece.layer == shape.layers()) shards.push_back(piece.index);
  }
  return shards;
}

void FleetSnapshots::report(std::size_t rank, sparse_fleet::Report& report) const {
  const auto add = [&report](StepNumber step, const Pieces& pieces) {
    sparse_fleet::Copies& copies = *report.add_copies();
    copies.set_step(step.value);
    write_pieces(pieces, *copies.mutable_pieces());
  };
  add(known_.step, known_.kept[rank]);
  if (stored()) add(snapshot_->step, snapshot_->keeps[rank]);
}

}  // namespace gossamer::sparse_engine
