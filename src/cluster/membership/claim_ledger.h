// SPDX-License-Identifier: Apache-2.0
//
// ClaimLedger: which sample ids are in which step, one by one, for each track. An incarnation that has
// computed a sample's contribution claims the sample. It adds the contribution only when the claim is
// granted. So no sample counts twice, whether through a repeated request, a second computation elsewhere, or
// a dead incarnation that comes back. Nothing is lost either: a step commits only with its whole set of ids,
// and the steps of a track commit in order.
//
// Step t owns the ids [t*B, (t+1)*B). An id of an open step is free or claimed by one incarnation. Fencing an
// incarnation frees its claims in all open steps, and others compute these samples again. In a committed step
// nothing changes any more. MarkLedger is the ledger for engines whose tracks take all ids of a step at once.
//
// Two kinds of rows must survive. The calls that make them return them, and the caller persists them before
// it answers:
//   a Claim, one for each run granted, with the key (track, step, first id);
//   a TrackCommit, with the key track, which replaces the one before.
// Fencing makes no row in this ledger. The fencing itself must be persisted with the membership before any id
// freed by it is granted again. Claims of fenced incarnations and of committed steps mean nothing and may be
// deleted at leisure.
//
// Cost: from the first claim on 4 bytes for each id of an open step, whatever the order of claims. About 100
// more for each incarnation that claims in the step. The caller limits how far ahead steps may be claimed. A
// call costs the ids it names; fence() visits the ids of the open steps in which the incarnation claimed.
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/ids.h"
#include "cluster/membership/fenced_incarnations.h"
#include "cluster/membership/track.h"

namespace gossamer::cluster {

// The ids [begin, end).
struct SampleRange {
  SampleId begin;
  SampleId end;
  bool operator==(const SampleRange&) const = default;
};

struct Claim {
  TrackId track;
  StepNumber step;
  SampleRange ids;
  Incarnation by;
  bool operator==(const Claim&) const = default;
};

// All steps before `next` are committed.
struct TrackCommit {
  TrackId track;
  StepNumber next;
  bool operator==(const TrackCommit&) const = default;
};

enum class ClaimOutcome {
  kAnswered,   // one answer for each id: `granted` and `taken`
  kFenced,     // the incarnation is dead; its claim is not looked at further
  kCommitted,  // the step is closed
  kNotOfStep,  // an id does not belong to the step, or there is none
  kNoTrack,
  kNotServing,  // of the coordinator: the asker is not in the view
};

struct ClaimAnswer {
  ClaimOutcome outcome = ClaimOutcome::kNoTrack;
  std::vector<Claim> granted = {};  // new rows; add exactly these
  std::vector<Claim> taken =
      {};  // claimed before, with their claimers: maybe this incarnation, whose first answer was lost
};

enum class CommitOutcome {
  kCommitted,
  kIncomplete,   // ids are free
  kEarlierOpen,  // an earlier step of the track is not committed
  kAlready,      // committed before
  kNoTrack,
  kNotServing,  // of the coordinator: the asker is not in the view
};

class ClaimLedger {
 public:
  struct Rows {
    std::vector<TrackCommit> commits;  // by track; a track without a row has committed nothing
    std::vector<Claim> claims;         // by track, step and first id
    bool operator==(const Rows&) const = default;
  };

  // Requires batch >= 1 and at least one track.
  ClaimLedger(std::uint64_t batch, std::span<const TrackId> tracks);
  // Takes up the rows that an earlier ledger returned, in any order. Meaningless rows may be among them.
  // Requires that no other rows overlap and that all tracks are known.
  ClaimLedger(std::uint64_t batch, std::span<const TrackId> tracks, FencedIncarnations fenced,
              const Rows& rows);

  // The claim's ids may be any part of the step.
  [[nodiscard]] ClaimAnswer claim(const Claim& claim);
  // kCommitted makes the row {track, step + 1}.
  [[nodiscard]] CommitOutcome commit(TrackId track, StepNumber step);
  // Refuses the incarnation from now on. Returns the claims that became free.
  std::vector<Claim> fence(Incarnation incarnation);

  // The first step that the track has not committed. Requires a known track.
  [[nodiscard]] StepNumber next(TrackId track) const;
  // The first step that some track has not committed.
  [[nodiscard]] StepNumber committed() const;
  // The unclaimed ids, and the claims of the others, of a step that is not committed. Requires a known track.
  [[nodiscard]] std::vector<SampleRange> missing(TrackId track, StepNumber step) const;
  [[nodiscard]] std::vector<Claim> claims(TrackId track, StepNumber step) const;
  // The fewest rows that make an equal ledger.
  [[nodiscard]] Rows rows() const;

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  struct OpenStep {
    std::vector<std::uint32_t> claimed_by;       // for each id an index into `contributors`, or kFree
    std::vector<Incarnation> contributors;       // in order of their first claims
    std::map<Incarnation, std::uint32_t> index;  // into `contributors`
    std::uint64_t free = 0;
  };
  struct Track {
    StepNumber next;
    std::map<StepNumber, OpenStep> open;  // the steps with a claim
  };

  [[nodiscard]] bool of_step(StepNumber step, const SampleRange& ids) const;
  [[nodiscard]] SampleId first(StepNumber step) const { return SampleId(step.value * batch_); }
  [[nodiscard]] const OpenStep* find(TrackId track, StepNumber step) const;

  std::uint64_t batch_;
  std::map<TrackId, Track> tracks_;
  FencedIncarnations fenced_;
};

}  // namespace gossamer::cluster
