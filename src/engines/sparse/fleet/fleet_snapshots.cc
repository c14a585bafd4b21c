// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_snapshots.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/probe.h"
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

void FleetSnapshots::begin(StepNumber step, std::vector<Pieces> keeps) {
  CHECK(!snapshot_);
  snapshot_ = Snapshot{.step = step, .keeps = std::move(keeps)};
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

std::optional<FleetSnapshots::Giving> FleetSnapshots::exchanged(std::uint64_t part, std::vector<Slices> got,
                                                                std::size_t rank, FleetDefect defect) {
  const std::size_t members = snapshot_->keeps.size();
  Giving next{.name = {.kind = ExchangeName::Kind::kSnapshot, .step = snapshot_->step, .round = part + 1},
              .operation = {},
              .given = {}};
  if (part == kSizes) {
    next.operation = {.kind = cluster::OperationKind::kAllToAll, .parts = snapshot_->sizes, .from = {}};
    std::vector<std::uint64_t> sizes(members);
    for (const Slices& one : got) {
      copy_front(one, std::as_writable_bytes(std::span(sizes)));
      next.operation.from.push_back(sizes[rank]);
    }
    next.given = std::move(snapshot_->given);
    return next;
  }
  if (part == kStored) return std::nullopt;
  snapshot_->got = std::move(got);
  snapshot_->stored = true;
  if (defect == FleetDefect::kEarlyForget) return std::nullopt;
  next.operation = {.kind = cluster::OperationKind::kAllGather,
                    .parts = std::vector<std::uint64_t>(members, 1),
                    .from = {}};
  next.given = {Slice::of(std::string(1, '\0'))};
  return next;
}

FleetSnapshots::Snapshot FleetSnapshots::complete() {
  Snapshot snapshot = *std::exchange(snapshot_, std::nullopt);
  known_ = {.step = snapshot.step, .kept = snapshot.keeps};
  return snapshot;
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
