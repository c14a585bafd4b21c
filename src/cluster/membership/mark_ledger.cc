// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/mark_ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

std::optional<StepNumber> highest_of(const std::map<Incarnation, StepNumber>& marks) {
  std::optional<StepNumber> highest;
  for (const auto& [by, next] : marks) highest = std::max(highest, std::optional(next));
  return highest;
}

}  // namespace

MarkLedger::MarkLedger(std::span<const TrackId> tracks) {
  CHECK(!tracks.empty());
  for (const TrackId track : tracks) tracks_.emplace(track, Marks());
  without_mark_ = tracks_.size();
}

MarkLedger::MarkLedger(std::span<const TrackId> tracks, FencedIncarnations fenced, const Rows& rows)
    : MarkLedger(tracks) {
  fenced_ = std::move(fenced);
  committed_ = rows.committed;
  for (const Mark& row : rows.marks) {
    CHECK(applied(row).outcome != MarkOutcome::kNoTrack, row.track.value);
  }
}

MarkAnswer MarkLedger::applied(const Mark& mark) {
  if (fenced_.contains(mark.by)) return {.outcome = MarkOutcome::kFenced};
  const auto track = tracks_.find(mark.track);
  if (track == tracks_.end()) return {.outcome = MarkOutcome::kNoTrack};
  Marks& marks = track->second;
  const auto before = highest_of(marks);
  const auto [place, is_new] = marks.emplace(mark.by, mark.next);
  if (!is_new && mark.next <= place->second) return {.outcome = MarkOutcome::kNothingNew};
  place->second = mark.next;
  count(before, highest_of(marks));

  MarkAnswer answer = {.outcome = MarkOutcome::kRaised};
  if (without_mark_ == 0 && at_.begin()->first > committed_) {
    committed_ = at_.begin()->first;
    answer.committed_rose = true;
  }
  return answer;
}

CorrectionOutcome MarkLedger::correct(StepNumber committed) {
  if (committed == committed_) return CorrectionOutcome::kNothingNew;
  if (committed < committed_) return CorrectionOutcome::kBehind;
  if (at_.empty() || at_.begin()->first < committed) return CorrectionOutcome::kContradicted;
  committed_ = committed;
  return CorrectionOutcome::kRaised;
}

bool MarkLedger::forget(TrackId track, Incarnation incarnation) {
  const auto place = tracks_.find(track);
  if (place == tracks_.end()) return false;
  const auto before = highest_of(place->second);
  if (place->second.erase(incarnation) == 0) return false;
  count(before, highest_of(place->second));
  return true;
}

void MarkLedger::fence(Incarnation incarnation) {
  if (!fenced_.fence(incarnation)) return;
  for (auto& [id, marks] : tracks_) {
    const auto before = highest_of(marks);
    if (marks.erase(incarnation) != 0) count(before, highest_of(marks));
  }
}

StepNumber MarkLedger::resume_step() const {
  return at_.empty() ? committed_ : std::max(committed_, at_.rbegin()->first);
}

std::optional<StepNumber> MarkLedger::mark(TrackId track) const {
  const auto place = tracks_.find(track);
  CHECK(place != tracks_.end(), track.value);
  return highest_of(place->second);
}

MarkLedger::Rows MarkLedger::rows() const {
  Rows rows = {.marks = {}, .committed = committed_};
  for (const auto& [id, marks] : tracks_) {
    for (const auto& [by, next] : marks) rows.marks.push_back({id, by, next});
  }
  return rows;
}

void MarkLedger::count(std::optional<StepNumber> before, std::optional<StepNumber> after) {
  if (before == after) return;
  if (before) {
    const auto place = at_.find(*before);
    if (--place->second == 0) at_.erase(place);
  } else {
    --without_mark_;
  }
  if (after) {
    ++at_[*after];
  } else {
    ++without_mark_;
  }
}

}  // namespace gossamer::cluster
