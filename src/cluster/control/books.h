// SPDX-License-Identifier: Apache-2.0
//
// Books: the part of a coordinator that keeps leases and the ledgers of samples: claims and marks. It answers
// what members ask, and writes what must not be forgotten. Where a member said what cannot be true, it says
// why that member is to be fenced. The coordinator fences it.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/control/records.h"
#include "cluster/control/workload.h"
#include "cluster/membership/claim_ledger.h"
#include "cluster/membership/lease_table.h"
#include "cluster/membership/mark_ledger.h"

namespace gossamer::cluster {

class Books {
 public:
  using Progress = google::protobuf::RepeatedPtrField<membership::Progress>;
  // Why a member is to be fenced; none: what it said is in order.
  using Objection = std::optional<std::string_view>;

  static constexpr Duration kMarksEvery{100'000'000};
  // What one member may hold: each is a row of the store, and memory here.
  static constexpr std::size_t kMostLeases = 1024;
  static constexpr std::size_t kMostClaims = 65'536;  // of steps that are not committed

  // Takes up the rows of the store, and removes those that mean nothing any more.
  Books(const Leadership& leadership, const Records& records, Instant now);

  // A lease, claim or commit is to be asked for.
  [[nodiscard]] Objection asks(LedMember& member, Instant now);
  [[nodiscard]] Objection lease(const LedMember& member, const membership::LeaseAsk& said, Instant now);
  [[nodiscard]] Objection claim(const LedMember& member, const membership::ClaimAsk& said);
  void commit(const LedMember& member, const membership::CommitAsk& said);
  // Marks of more tracks than the run has. Parsing has made an object of each, and looking at them costs
  // more.
  [[nodiscard]] Objection too_many(const Progress& progress) const;
  // Takes up the marks of a member of the view.
  [[nodiscard]] Objection applied(const LedMember& member, const Progress& progress, Instant now);
  // Forgets marks in tracks that the member holds no more, because they would never rise.
  void forget_others(Incarnation by, const Progress& progress);
  // The placement is another one, and all tracks will be restored to `committed`, if it says so. Only marks
  // of those that hold a track now count on: a mark that its holder has not earned would else outlive the
  // holding, and carry the committed step beyond the next holder.
  void placed(std::optional<StepNumber> committed);
  // The incarnation is fenced.
  void free_everything_of(Incarnation incarnation);

  // Frees lapsed leases, and writes marks.
  void tick(Instant now);
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] const std::optional<MarkLedger>& marks() const { return marks_; }

 private:
  [[nodiscard]] bool known(TrackId track) const { return tracks_.contains(track); }
  [[nodiscard]] bool may_claim(const LedMember& member) const;
  [[nodiscard]] bool may_mark(NodeId node, TrackId track) const;
  [[nodiscard]] bool holds(Incarnation life, TrackId track) const;
  void forget_mark(TrackId track, Incarnation by);
  void take_up_rows(const Records& records);
  void drop_rows(const std::vector<Claim>& rows);
  void write_marks(Instant now);
  void free_marks_of(Incarnation incarnation);
  [[nodiscard]] bool guarded(Defect without) const { return options_.guarded(without); }
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const CoordinatorOptions& options_;
  const Workload& workload_;
  const LedRun& run_;
  CoordinatorOutbox& outbox_;
  const std::set<TrackId> tracks_;
  LeaseTable leases_;
  std::optional<ClaimLedger> claims_;
  std::optional<MarkLedger> marks_;
  // The rows in the store. The ledgers join neighbouring claims, and so do not know them.
  std::map<std::pair<TrackId, StepNumber>, std::vector<Claim>> claim_rows_;
  std::map<Incarnation, std::size_t> claims_of_;  // rows of each member
  std::set<std::pair<Incarnation, TrackId>> mark_rows_;
  std::map<std::pair<TrackId, Incarnation>, StepNumber> unwritten_marks_;
  bool committed_unwritten_ = false;
  std::optional<Instant> marks_due_;
};

}  // namespace gossamer::cluster
