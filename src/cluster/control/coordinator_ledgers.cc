// SPDX-License-Identifier: Apache-2.0
//
// Coordinator, the part that leases keys and counts samples.
#include <algorithm>
#include <utility>

#include "cluster/control/coordinator.h"

namespace gossamer::cluster {
namespace {

using membership::ToMember;

constexpr Duration kLongestLease{3600'000'000'000};
constexpr std::uint64_t kStepsAhead = 4096;  // a step further ahead costs memory for nothing

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

void Coordinator::lease(Member& member, const membership::LeaseAsk& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  const LeaseRequest request{
      .lease = {.keys = {LeaseSpace(said.keys().space()), said.keys().begin(), said.keys().end()},
                .holder = peer.incarnation,
                .duration = {said.duration_ns()}},
      .sent = {said.sent_ns()}};
  const bool sound = request.lease.keys.begin < request.lease.keys.end &&
                     request.lease.duration > Duration{} && request.lease.duration <= kLongestLease;
  if (!sound) return fence(peer.node, "it asked for what is no lease", now);
  LeaseAnswer answer{.outcome = LeaseOutcome::kNotHeld};
  if (said.wish() == membership::LeaseAsk::GRANT) {
    answer = leases_.grant(request, now);
  } else if (said.wish() == membership::LeaseAsk::RENEW) {
    answer = leases_.renew(request, now);
  } else if (leases_.release(request)) {
    outbox_.put(remove_lease(request.lease));
  }
  if (answer.outcome == LeaseOutcome::kGranted)
    outbox_.put(put_lease({request.lease.keys, request.lease.holder, answer.duration}));
  // Time was promised: that counts only if this process led when it was asked.
  if (answer.outcome == LeaseOutcome::kRenewed) outbox_.guard();
  ToMember message;
  membership::LeaseAnswer& told = *message.mutable_lease();
  told.set_number(said.number());
  told.set_outcome(static_cast<std::uint32_t>(answer.outcome));
  told.set_duration_ns(answer.duration.ns);
  told.set_holder(answer.holder.value);
  tell(member, std::move(message));
}

bool Coordinator::known(TrackId track) const {
  return std::find(options_.tracks.begin(), options_.tracks.end(), track) != options_.tracks.end();
}

void Coordinator::claim(Member& member, const membership::ClaimAsk& said) {
  const Claim claim{.track = TrackId(said.track()),
                    .step = StepNumber(said.step()),
                    .ids = {SampleId(said.begin()), SampleId(said.end())},
                    .by = peer_of(member.record).incarnation};
  ClaimAnswer answer;
  if (claims_ && known(claim.track)) {
    const StepNumber last(claims_->next(claim.track).value + kStepsAhead);
    answer = claim.step <= last ? claims_->claim(claim) : ClaimAnswer{.outcome = ClaimOutcome::kNotOfStep};
  }
  if (options_.defect == Defect::kAcceptDuplicate && !answer.taken.empty()) {
    for (const Claim& one : std::exchange(answer.taken, {}))
      answer.granted.push_back({one.track, one.step, one.ids, claim.by});
  }
  ToMember message;
  membership::ClaimAnswer& told = *message.mutable_claim();
  told.set_number(said.number());
  told.set_outcome(static_cast<std::uint32_t>(answer.outcome));
  for (const Claim& one : answer.granted) {
    if (options_.defect != Defect::kLostLedgerWrite) outbox_.put(put_claim(one));
    *told.add_granted() = record_of(one);
  }
  for (const Claim& one : answer.taken) *told.add_taken() = record_of(one);
  tell(member, std::move(message));
}

void Coordinator::commit(Member& member, const membership::CommitAsk& said) {
  const TrackId track(said.track());
  const StepNumber step(said.step());
  CommitOutcome outcome = CommitOutcome::kNoTrack;
  std::vector<Claim> settled;
  if (claims_ && known(track)) {
    if (step == claims_->next(track)) settled = claims_->claims(track, step);
    outcome = claims_->commit(track, step);
  }
  if (outcome == CommitOutcome::kCommitted) {
    outbox_.put(put_commit({track, StepNumber(step.value + 1)}));
    for (const Claim& one : settled) outbox_.put(remove_claim(one));
  }
  ToMember message;
  message.mutable_commit()->set_number(said.number());
  message.mutable_commit()->set_outcome(static_cast<std::uint32_t>(outcome));
  tell(member, std::move(message));
}

void Coordinator::applied(Member& member, const membership::Beat& said, Instant now) {
  if (!marks_) return;
  const Incarnation by = peer_of(member.record).incarnation;
  for (const membership::Beat::Progress& one : said.progress()) {
    const Mark mark{.track = TrackId(one.track()), .by = by, .next = StepNumber(one.next())};
    const MarkAnswer answer = marks_->applied(mark);
    if (answer.outcome == MarkOutcome::kNoTrack)
      return fence(NodeId(member.record.node()), "it reported on a track that is none", now);
    if (answer.outcome != MarkOutcome::kRaised) continue;
    unwritten_marks_[{mark.track, by}] = mark.next;
    committed_unwritten_ = committed_unwritten_ || answer.committed_rose;
  }
  if (!unwritten_marks_.empty() && !marks_due_) marks_due_ = now + kMarksEvery;
}

void Coordinator::write_marks() {
  marks_due_.reset();
  for (const auto& [key, next] : std::exchange(unwritten_marks_, {})) {
    if (!fenced_.contains(key.second)) outbox_.put(put_mark({key.first, key.second, next}));
  }
  if (std::exchange(committed_unwritten_, false)) outbox_.put(put_committed(marks_->committed()));
}

void Coordinator::free_everything_of(Incarnation incarnation) {
  for (const Lease& freed : leases_.fence(incarnation)) outbox_.put(remove_lease(freed));
  if (claims_) {
    for (const Claim& freed : claims_->fence(incarnation)) outbox_.put(remove_claim(freed));
  }
  if (marks_) marks_->fence(incarnation);
}

}  // namespace gossamer::cluster
