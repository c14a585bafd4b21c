// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/books.h"

#include <utility>

namespace gossamer::cluster {
namespace {

using membership::ToMember;

constexpr std::uint64_t kStepsAhead = 4096;  // claims of steps further ahead cost memory for nothing
// A mark costs the same wherever it is. Members go on while no coordinator hears of it, so it may be far
// ahead.
constexpr std::uint64_t kMarkAhead = 1ULL << 32;

membership::ClaimRecord record_of(const Claim& claim) {
  membership::ClaimRecord record;
  record.set_track(claim.track.value);
  record.set_step(claim.step.value);
  record.set_begin(claim.ids.begin.value);
  record.set_end(claim.ids.end.value);
  record.set_by(claim.by.value);
  return record;
}

}  // namespace

Books::Books(const Leadership& leadership, const Records& records, Instant now)
    : options_(leadership.options),
      workload_(leadership.workload),
      run_(leadership.run),
      outbox_(leadership.outbox),
      tracks_(options_.tracks.begin(), options_.tracks.end()),
      leases_(records.leases, records.fenced, now) {
  take_up_rows(records);
  for (const Lease& one : records.leases) {
    if (run_.fenced.contains(one.holder)) outbox_.put(remove_lease(one));  // fenced before it was freed
  }
}

Books::Objection Books::asks(LedMember& member, Instant now) {
  if (member.requests.take(now)) return std::nullopt;
  reach(ControlProbe::kOverBudget);
  return "it asks for more leases, claims and commits than a member can need";
}

Books::Objection Books::lease(const LedMember& member, const membership::LeaseAsk& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  const LeaseRequest request{
      .lease = {.keys = {LeaseSpace(said.keys().space()), said.keys().begin(), said.keys().end()},
                .holder = peer.incarnation,
                .duration = {said.duration_ns()}},
      .sent = {said.sent_ns()}};
  const bool sound = membership::LeaseAsk::Wish_IsValid(said.wish()) &&
                     request.lease.keys.begin < request.lease.keys.end &&
                     request.lease.duration > Duration{} && request.lease.duration <= kLongestLease;
  if (!sound) {
    reach(ControlProbe::kImpossible);
    return "it asked for what is no lease";
  }
  LeaseAnswer answer{.outcome = LeaseOutcome::kNotHeld};
  if (said.wish() == membership::LeaseAsk::GRANT && run_.view.find(peer) == nullptr) {
    answer.outcome = LeaseOutcome::kNotServing;
  } else if (said.wish() == membership::LeaseAsk::GRANT) {
    answer = leases_.grant(request, now);
  } else if (said.wish() == membership::LeaseAsk::RENEW) {
    answer = leases_.renew(request, now);
  } else if (leases_.release(request)) {
    outbox_.put(remove_lease(request.lease));
  }
  if (answer.outcome == LeaseOutcome::kGranted) {
    outbox_.put(put_lease({request.lease.keys, request.lease.holder, answer.duration}));
    if (leases_.held(peer.incarnation) > kMostLeases) {
      reach(ControlProbe::kOverBudget);
      return "it holds more leases than a member can need";
    }
  }
  // The answer promises time, which counts only if this process led when it was asked.
  if (answer.outcome == LeaseOutcome::kRenewed && guarded(Defect::kUnprovenRenewal)) outbox_.guard();
  ToMember message;
  membership::LeaseAnswer& told = *message.mutable_lease();
  told.set_number(said.number());
  told.set_outcome(static_cast<std::uint32_t>(answer.outcome));
  told.set_duration_ns(answer.duration.ns);
  told.set_holder(answer.holder.value);
  outbox_.tell(member, std::move(message));
  return std::nullopt;
}

Books::Objection Books::claim(const LedMember& member, const membership::ClaimAsk& said) {
  const Claim claim{.track = TrackId(said.track()),
                    .step = StepNumber(said.step()),
                    .ids = {SampleId(said.begin()), SampleId(said.end())},
                    .by = peer_of(member.record).incarnation};
  ClaimAnswer answer;
  if (!may_claim(member)) {
    answer.outcome = ClaimOutcome::kNotServing;
  } else if (claims_ && known(claim.track)) {
    const StepNumber last(claims_->next(claim.track).value + kStepsAhead);
    answer = claim.step <= last ? claims_->claim(claim) : ClaimAnswer{.outcome = ClaimOutcome::kNotOfStep};
  }
  if (!guarded(Defect::kAcceptDuplicate) && !answer.taken.empty()) {
    for (const Claim& one : std::exchange(answer.taken, {}))
      answer.granted.push_back({one.track, one.step, one.ids, claim.by});
  }
  ToMember message;
  membership::ClaimAnswer& told = *message.mutable_claim();
  told.set_number(said.number());
  told.set_outcome(static_cast<std::uint32_t>(answer.outcome));
  for (const Claim& one : answer.granted) {
    if (guarded(Defect::kLostLedgerWrite)) {
      outbox_.put(put_claim(one));
      claim_rows_[{one.track, one.step}].push_back(one);
      ++claims_of_[one.by];
    }
    *told.add_granted() = record_of(one);
  }
  for (const Claim& one : answer.taken) *told.add_taken() = record_of(one);
  outbox_.tell(member, std::move(message));
  const auto rows = claims_of_.find(claim.by);
  if (rows == claims_of_.end() || rows->second <= kMostClaims) return std::nullopt;
  reach(ControlProbe::kOverBudget);
  return "it claims more than a member can need";
}

// Removes rows from the store.
void Books::drop_rows(const std::vector<Claim>& rows) {
  for (const Claim& one : rows) {
    outbox_.put(remove_claim(one));
    const auto count = claims_of_.find(one.by);
    if (--count->second == 0) claims_of_.erase(count);
  }
}

// A member outside of the view computes no samples. It does not have the network yet, or no more.
bool Books::may_claim(const LedMember& member) const {
  if (run_.view.find(peer_of(member.record)) != nullptr || !guarded(Defect::kClaimsOfAnybody)) return true;
  reach(ControlProbe::kEarlyClaim);
  return false;
}

void Books::commit(const LedMember& member, const membership::CommitAsk& said) {
  const TrackId track(said.track());
  const StepNumber step(said.step());
  CommitOutcome outcome = CommitOutcome::kNoTrack;
  if (!may_claim(member)) {
    outcome = CommitOutcome::kNotServing;
  } else if (claims_ && known(track)) {
    outcome = claims_->commit(track, step);
    if (outcome == CommitOutcome::kIncomplete && !guarded(Defect::kOpenCommit))
      outcome = CommitOutcome::kCommitted;
  }
  if (outcome == CommitOutcome::kCommitted) {
    outbox_.put(put_commit({track, StepNumber(step.value + 1)}));
    const auto rows = claim_rows_.extract({track, step});
    if (!rows.empty()) drop_rows(rows.mapped());
  }
  ToMember message;
  message.mutable_commit()->set_number(said.number());
  message.mutable_commit()->set_outcome(static_cast<std::uint32_t>(outcome));
  outbox_.tell(member, std::move(message));
}

// Only the holder of a thing may mark its track. A mark from another member was true before the thing changed
// hands, or was never true.
bool Books::may_mark(NodeId node, TrackId track) const {
  const auto thing = workload_.thing_of(track);
  if (!thing || !guarded(Defect::kMarksOfAnybody)) return true;
  const auto holding = run_.holdings.find(*thing);
  return holding != run_.holdings.end() && holding->second == node;
}

Books::Objection Books::too_many(const Progress& progress) const {
  if (!marks_ || static_cast<std::size_t>(progress.size()) <= tracks_.size()) return std::nullopt;
  reach(ControlProbe::kImpossible);
  return "it says how far more tracks are than there are";
}

Books::Objection Books::applied(const LedMember& member, const Progress& progress, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  if (!marks_ || run_.view.find(peer) == nullptr) return std::nullopt;
  const Incarnation by = peer.incarnation;
  const StepNumber last(marks_->committed().value + kMarkAhead);
  for (const membership::Progress& one : progress) {
    const Mark mark{.track = TrackId(one.track()), .by = by, .next = StepNumber(one.next())};
    // A mark never falls, so a wrong one would end the ledger.
    if (!known(mark.track) || mark.next > last) {
      reach(ControlProbe::kImpossible);
      return "its mark cannot be true";
    }
    if (!may_mark(peer.node, mark.track)) {
      reach(ControlProbe::kMarkOfOthers);
      continue;
    }
    const MarkAnswer answer = marks_->applied(mark);
    if (answer.outcome != MarkOutcome::kRaised) continue;
    unwritten_marks_[{mark.track, by}] = mark.next;
    committed_unwritten_ = committed_unwritten_ || answer.committed_rose;
  }
  if (!unwritten_marks_.empty() && !marks_due_) marks_due_ = now + kMarksEvery;
  return std::nullopt;
}

void Books::forget_others(Incarnation by, const Progress& progress) {
  if (!marks_) return;
  std::set<TrackId> held;
  for (const membership::Progress& one : progress) held.insert(TrackId(one.track()));
  for (const TrackId track : options_.tracks) {
    if (!held.contains(track)) forget_mark(track, by);
  }
}

void Books::forget_mark(TrackId track, Incarnation by) {
  if (!marks_->forget(track, by)) return;
  unwritten_marks_.erase({track, by});
  if (mark_rows_.erase({by, track}) != 0) outbox_.put(remove_mark(track, by));
}

bool Books::holds(Incarnation life, TrackId track) const {
  const auto thing = workload_.thing_of(track);
  if (!thing) return true;
  const auto holding = run_.holdings.find(*thing);
  return holding != run_.holdings.end() && run_.view.find({holding->second, life}) != nullptr;
}

void Books::placed(std::optional<StepNumber> committed) {
  if (!marks_) return;
  if (committed && marks_->correct(*committed) == CorrectionOutcome::kRaised) {
    reach(ControlProbe::kRaised);
    outbox_.put(put_committed(*committed));
  }
  if (!guarded(Defect::kMarksOfAnybody)) return;
  for (const Mark& one : marks_->rows().marks) {
    if (!holds(one.by, one.track)) forget_mark(one.track, one.by);
  }
}

void Books::tick(Instant now) {
  const Instant lapsed_by = guarded(Defect::kStaleLease) ? now : now + from_seconds(2);
  for (const Lease& lapsed : leases_.expire(lapsed_by)) outbox_.put(remove_lease(lapsed));
  if (marks_due_ && *marks_due_ <= now) write_marks(now);
}

std::optional<Instant> Books::next_wakeup() const {
  const std::optional<Instant> lapse = leases_.next_wakeup();
  return lapse && (!marks_due_ || *lapse < *marks_due_) ? lapse : marks_due_;
}

void Books::write_marks(Instant now) {
  marks_due_.reset();
  // Marks would heap up while the store fails. Here a mark replaces the one before.
  if (outbox_.store_fails() && outbox_.waiting()) {
    marks_due_ = now + kMarksEvery;
    return;
  }
  for (const auto& [key, next] : std::exchange(unwritten_marks_, {})) {
    if (run_.fenced.contains(key.second)) continue;
    outbox_.put(put_mark({key.first, key.second, next}));
    mark_rows_.insert({key.second, key.first});
  }
  if (!std::exchange(committed_unwritten_, false)) return;
  const std::uint64_t early = guarded(Defect::kEarlyCommit) ? 0 : 1;
  outbox_.put(put_committed(StepNumber(marks_->committed().value + early)));
}

// Takes up the ledgers' rows, and removes those without meaning, which would be loaded at every takeover.
void Books::take_up_rows(const Records& records) {
  if (options_.tracks.empty()) return;
  claims_.emplace(options_.batch, options_.tracks, run_.fenced, records.claims);
  marks_.emplace(options_.tracks, run_.fenced, records.marks);
  for (const Claim& one : records.claims.claims) {
    if (run_.fenced.contains(one.by) || one.step < claims_->next(one.track)) {
      outbox_.put(remove_claim(one));
    } else {
      claim_rows_[{one.track, one.step}].push_back(one);
      ++claims_of_[one.by];
    }
  }
  for (const Mark& one : records.marks.marks) {
    if (run_.fenced.contains(one.by)) {
      outbox_.put(remove_mark(one.track, one.by));
    } else {
      mark_rows_.insert({one.by, one.track});
    }
  }
}

void Books::free_everything_of(Incarnation incarnation) {
  if (guarded(Defect::kKeptLeases)) {
    for (const Lease& freed : leases_.fence(incarnation)) outbox_.put(remove_lease(freed));
  }
  if (!claims_) return;
  marks_->fence(incarnation);
  free_marks_of(incarnation);
  if (!guarded(Defect::kKeptClaims)) return;
  static_cast<void>(claims_->fence(incarnation));
  if (!claims_of_.contains(incarnation)) return;
  std::vector<Claim> freed;
  for (auto& [step, rows] : claim_rows_) {
    std::erase_if(rows, [&](const Claim& one) {
      const bool frees = one.by == incarnation;
      if (frees) freed.push_back(one);
      return frees;
    });
  }
  drop_rows(freed);
}

void Books::free_marks_of(Incarnation incarnation) {
  const auto first = mark_rows_.lower_bound({incarnation, TrackId()});
  auto end = first;
  for (; end != mark_rows_.end() && end->first == incarnation; ++end)
    outbox_.put(remove_mark(end->second, incarnation));
  mark_rows_.erase(first, end);
}

}  // namespace gossamer::cluster
