// SPDX-License-Identifier: Apache-2.0
//
// MarkLedger: how far each track has come, for engines whose tracks take all ids of a step at once. Holders
// report now and then a mark, the first step they have not applied. So the ledger trails behind them, and
// costs no round trip in a step. A step is committed when all tracks have applied it. committed() is the
// first step that is not, and never falls. Nobody is ever asked to go back behind it.
//
// A track's mark is the highest of its holders that are not fenced. Reports may be repeated and overtake each
// other. A fenced incarnation's reports are refused and its marks forgotten: steps that it alone had applied
// are lost. The track then has no mark until a new holder reports. That holder replays, and may well begin
// behind committed().
//
// At a view change all survivors have reported exactly where they are. Tracks without a mark would keep
// committed() where it is, so correct() moves it on. It relies on the view change to restore those tracks,
// and goes at most to where every other track already is. resume_step() is where the new view brings every
// track.
//
// These rows must survive: a Mark with the key (track, incarnation), and committed(). Each replaces the one
// before; the calls say which changed. Marks of fenced incarnations mean nothing and may be deleted at
// leisure.
//
// Cost: about 200 bytes a track; logarithmic in the number of tracks, but fence() visits them all. Thread
// rule: one owner.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "cluster/membership/fenced_incarnations.h"
#include "cluster/membership/track.h"

namespace gossamer::cluster {

// The incarnation has applied all steps before `next` to the track.
struct Mark {
  TrackId track;
  Incarnation by;
  StepNumber next;
  bool operator==(const Mark&) const = default;
};

enum class MarkOutcome {
  kRaised,
  kNothingNew,  // not beyond this incarnation's mark
  kFenced,
  kNoTrack,
};

struct MarkAnswer {
  MarkOutcome outcome = MarkOutcome::kNoTrack;
  bool committed_rose = false;  // then the row committed() is new, too
};

enum class CorrectionOutcome {
  kRaised,
  kNothingNew,    // committed() is there already
  kBehind,        // below committed()
  kContradicted,  // a living holder is not that far, or no track has a mark
};

class MarkLedger {
 public:
  struct Rows {
    std::vector<Mark> marks;  // by track and incarnation
    StepNumber committed;
    bool operator==(const Rows&) const = default;
  };

  // Requires at least one track.
  explicit MarkLedger(std::span<const TrackId> tracks);
  // Takes up the rows that an earlier ledger returned, in any order. Rows of fenced incarnations may be among
  // them. Requires that all tracks are known.
  MarkLedger(std::span<const TrackId> tracks, FencedIncarnations fenced, const Rows& rows);

  // kRaised makes the row `mark`.
  [[nodiscard]] MarkAnswer applied(const Mark& mark);
  // kRaised makes the row committed().
  [[nodiscard]] CorrectionOutcome correct(StepNumber committed);
  // The incarnation holds the track no more. Its mark will not rise, so it counts no longer. True: delete its
  // row.
  bool forget(TrackId track, Incarnation incarnation);
  // Refuses the incarnation from now on. The only row is the fencing itself, which the membership keeps.
  void fence(Incarnation incarnation);

  [[nodiscard]] StepNumber committed() const { return committed_; }
  // The highest mark of any track. Not below committed(), even if all holders that had come so far are gone.
  [[nodiscard]] StepNumber resume_step() const;
  // None if no living holder has reported. Requires a known track.
  [[nodiscard]] std::optional<StepNumber> mark(TrackId track) const;
  [[nodiscard]] Rows rows() const;

 private:
  using Marks = std::map<Incarnation, StepNumber>;

  void count(std::optional<StepNumber> before, std::optional<StepNumber> after);

  std::map<TrackId, Marks> tracks_;       // marks of living incarnations
  std::map<StepNumber, std::size_t> at_;  // how many tracks have this mark
  std::size_t without_mark_;
  StepNumber committed_;
  FencedIncarnations fenced_;
};

}  // namespace gossamer::cluster
