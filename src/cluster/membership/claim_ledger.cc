// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/claim_ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

// Adds one id of `like`'s track and step to the last run, if it continues that run; else as a new run.
void append(std::vector<Claim>& runs, const Claim& like, SampleId id, Incarnation by) {
  const SampleId end = SampleId(id.value + 1);
  if (!runs.empty()) {
    Claim& last = runs.back();
    if (last.ids.end == id && last.by == by && last.step == like.step && last.track == like.track) {
      last.ids.end = end;
      return;
    }
  }
  runs.push_back({like.track, like.step, {id, end}, by});
}

}  // namespace

ClaimLedger::ClaimLedger(std::uint64_t batch, std::span<const TrackId> tracks) : batch_(batch) {
  CHECK(batch >= 1 && !tracks.empty(), batch, tracks.size());
  for (const TrackId track : tracks) tracks_.emplace(track, Track());
}

ClaimLedger::ClaimLedger(std::uint64_t batch, std::span<const TrackId> tracks, FencedIncarnations fenced,
                         const Rows& rows)
    : ClaimLedger(batch, tracks) {
  fenced_ = std::move(fenced);
  for (const TrackCommit& row : rows.commits) {
    const auto track = tracks_.find(row.track);
    CHECK(track != tracks_.end(), row.track.value);
    track->second.next = row.next;
  }
  for (const Claim& row : rows.claims) {
    const ClaimAnswer answer = claim(row);
    const bool meaningless =
        answer.outcome == ClaimOutcome::kFenced || answer.outcome == ClaimOutcome::kCommitted;
    CHECK(meaningless || (answer.outcome == ClaimOutcome::kAnswered && answer.taken.empty()), row.track.value,
          row.step.value, row.ids.begin.value, row.ids.end.value, row.by.value);
  }
}

ClaimAnswer ClaimLedger::claim(const Claim& claim) {
  if (fenced_.contains(claim.by)) return {.outcome = ClaimOutcome::kFenced};
  const auto track = tracks_.find(claim.track);
  if (track == tracks_.end()) return {.outcome = ClaimOutcome::kNoTrack};
  if (!of_step(claim.step, claim.ids)) return {.outcome = ClaimOutcome::kNotOfStep};
  if (claim.step < track->second.next) return {.outcome = ClaimOutcome::kCommitted};

  OpenStep& step = track->second.open[claim.step];
  if (step.claimed_by.empty()) {
    step.claimed_by.assign(batch_, kFree);
    step.free = batch_;
  }
  const auto [place, is_new] =
      step.index.emplace(claim.by, static_cast<std::uint32_t>(step.contributors.size()));
  if (is_new) step.contributors.push_back(claim.by);

  ClaimAnswer answer = {.outcome = ClaimOutcome::kAnswered};
  for (SampleId id = claim.ids.begin; id < claim.ids.end; ++id) {
    std::uint32_t& by = step.claimed_by[id.value - first(claim.step).value];
    if (by != kFree) {
      append(answer.taken, claim, id, step.contributors[by]);
      continue;
    }
    by = place->second;
    --step.free;
    append(answer.granted, claim, id, claim.by);
  }
  return answer;
}

CommitOutcome ClaimLedger::commit(TrackId track, StepNumber step) {
  const auto place = tracks_.find(track);
  if (place == tracks_.end()) return CommitOutcome::kNoTrack;
  auto& [next, open] = place->second;
  if (step < next) return CommitOutcome::kAlready;
  if (step > next) return CommitOutcome::kEarlierOpen;
  const auto claimed = open.find(step);
  if (claimed == open.end() || claimed->second.free != 0) return CommitOutcome::kIncomplete;
  open.erase(claimed);
  ++next;
  return CommitOutcome::kCommitted;
}

std::vector<Claim> ClaimLedger::fence(Incarnation incarnation) {
  std::vector<Claim> freed;
  if (!fenced_.fence(incarnation)) return freed;
  for (auto& [track_id, track] : tracks_) {
    for (auto& [number, step] : track.open) {
      const auto place = step.index.find(incarnation);
      if (place == step.index.end()) continue;
      const Claim like = {track_id, number, {}, incarnation};
      for (std::uint64_t i = 0; i < batch_; ++i) {
        if (step.claimed_by[i] != place->second) continue;
        step.claimed_by[i] = kFree;
        ++step.free;
        append(freed, like, SampleId(first(number).value + i), incarnation);
      }
    }
  }
  return freed;
}

StepNumber ClaimLedger::next(TrackId track) const {
  const auto place = tracks_.find(track);
  CHECK(place != tracks_.end(), track.value);
  return place->second.next;
}

StepNumber ClaimLedger::committed() const {
  const auto behind = std::min_element(tracks_.begin(), tracks_.end(), [](const auto& a, const auto& b) {
    return a.second.next < b.second.next;
  });
  return behind->second.next;
}

std::vector<SampleRange> ClaimLedger::missing(TrackId track, StepNumber step) const {
  CHECK(step >= next(track), step.value, next(track).value);
  const OpenStep* open = find(track, step);
  if (open == nullptr) return {{first(step), SampleId(first(step).value + batch_)}};
  std::vector<SampleRange> missing;
  for (std::uint64_t i = 0; i < batch_; ++i) {
    if (open->claimed_by[i] != kFree) continue;
    const SampleId id = SampleId(first(step).value + i);
    if (missing.empty() || missing.back().end != id) missing.push_back({id, id});
    ++missing.back().end;
  }
  return missing;
}

std::vector<Claim> ClaimLedger::claims(TrackId track, StepNumber step) const {
  std::vector<Claim> claims;
  const OpenStep* open = find(track, step);
  if (open == nullptr) return claims;
  for (std::uint64_t i = 0; i < batch_; ++i) {
    const std::uint32_t by = open->claimed_by[i];
    if (by == kFree) continue;
    append(claims, {track, step, {}, {}}, SampleId(first(step).value + i), open->contributors[by]);
  }
  return claims;
}

ClaimLedger::Rows ClaimLedger::rows() const {
  Rows rows;
  for (const auto& [id, track] : tracks_) {
    if (track.next != StepNumber(0)) rows.commits.push_back({id, track.next});
    for (const auto& [number, step] : track.open) {
      const std::vector<Claim> claimed = claims(id, number);
      rows.claims.insert(rows.claims.end(), claimed.begin(), claimed.end());
    }
  }
  return rows;
}

bool ClaimLedger::of_step(StepNumber step, const SampleRange& ids) const {
  return ids.begin < ids.end && ids.begin.value / batch_ == step.value &&
         (ids.end.value - 1) / batch_ == step.value;
}

const ClaimLedger::OpenStep* ClaimLedger::find(TrackId track, StepNumber step) const {
  const auto place = tracks_.find(track);
  CHECK(place != tracks_.end(), track.value);
  const auto open = place->second.open.find(step);
  return open == place->second.open.end() ? nullptr : &open->second;
}

}  // namespace gossamer::cluster
