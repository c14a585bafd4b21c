// SPDX-License-Identifier: Apache-2.0
//
// FleetSnapshots: the copies that members keep of each other's pieces, as a member knows of them. The
// snapshot that is on its way is here, too (docs/protocols/sparse-step.md, "Snapshots"). A snapshot is three
// exchanges, beside the steps.
//
//   snapshots.begin(step, keeps);                    // then delta_work() gathers what the keepers lack
//   auto giving = snapshots.cut(deltas);             // the first exchange
//   snapshots.sized(got, most, rank);                // the second one
//   snapshots.take(got);                             // then Vault::check() looks at all deltas
//   giving = snapshots.store();                      // the third one
//   snapshots.complete();                            // all members have stored it
//
// Thread rule: the loop thread. Pure: no time, no messages.
#pragma once

#include <gossamer/sparse_fleet.pb.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "cluster/collective/operation.h"
#include "engines/sparse/fleet/fleet_exchanges.h"
#include "engines/sparse/fleet/recovery/recovery_plan.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/layout.h"

namespace gossamer::sparse_engine {

class FleetSnapshots {
 public:
  // Its exchanges.
  enum Part : std::uint64_t { kSizes, kDeltas, kStored };
  // Copies of other members' pieces, all as of one step.
  struct Copies {
    StepNumber step;
    std::vector<Pieces> kept;  // by rank
  };
  struct Snapshot {
    StepNumber step;
    std::vector<Pieces> keeps;              // by rank
    std::vector<Pieces> gets = {};          // by rank: what it has of the pieces that this member keeps
    std::vector<std::uint64_t> sizes = {};  // bytes that this member gives, by rank
    Slices given = {};
    std::vector<Slices> got = {};  // by rank
    bool stored = false;           // everything has come, and is good
  };
  // An exchange that is to begin.
  struct Giving {
    ExchangeName name;
    cluster::Operation operation;
    Slices given;
  };

  // Goes on with the copies that the layout knows. Returns the snapshot that was under way, if the layout
  // counts it.
  [[nodiscard]] std::optional<Snapshot> take_up(const Layout& layout);
  // Whether it is time for a snapshot, when all steps before `step` are applied. All members answer the same.
  [[nodiscard]] bool due(StepNumber step, const Layout& layout, const FleetJob& job) const;
  // Whether all copies are where the layout wants them.
  [[nodiscard]] bool all_kept(const Layout& layout) const;

  // A snapshot of the state before `step`. `me`: this member's rank. Requires that none is under way.
  void begin(StepNumber step, SnapshotPlan plan, std::size_t me);
  // Requires that one is under way. `deltas`: what this member gives each keeper, by rank.
  [[nodiscard]] Giving cut(const std::vector<Slices>& deltas);
  // What no member can give, and the rank of the one that did.
  struct WrongGift {
    std::size_t rank;
    Error error;
  };
  // All members have told how many bytes they give each, by rank. Returns the exchange of the deltas, unless
  // a member would give this one, of rank `me`, more than its pieces have.
  [[nodiscard]] std::variant<Giving, WrongGift> sized(const std::vector<Slices>& got, const FleetJob& job,
                                                      std::size_t me);
  // Keeps the deltas, by rank. They do not count before store().
  const Snapshot& take(std::vector<Slices> got) {
    snapshot_->got = std::move(got);
    return *snapshot_;
  }
  // The deltas are good. Returns the last exchange.
  [[nodiscard]] Giving store();
  // All members have stored it: older copies are not needed any more.
  [[nodiscard]] Snapshot complete();

  // The newest copies that all members have stored.
  [[nodiscard]] const Copies& known() const { return known_; }
  [[nodiscard]] const std::optional<Snapshot>& under_way() const { return snapshot_; }
  [[nodiscard]] bool stored() const { return snapshot_ && snapshot_->stored; }
  // The pieces that the member of `rank` has copies of; those of the newest snapshot that it has stored.
  [[nodiscard]] const Pieces& kept_by(std::size_t rank) const {
    return (stored() ? snapshot_->keeps : known_.kept)[rank];
  }
  // The output shards among these.
  [[nodiscard]] std::vector<std::uint64_t> shards_kept(std::size_t rank, const FleetShape& shape) const;
  // Writes down which copies the member of `rank` has.
  void report(std::size_t rank, sparse_fleet::Report& report) const;

 private:
  [[nodiscard]] Giving next(Part part) const;

  Copies known_;
  std::optional<Snapshot> snapshot_;
};

}  // namespace gossamer::sparse_engine
