// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "cluster/membership/accusations.h"

namespace gossamer::cluster {

using membership::ToCoordinator;
using membership::ToMember;

namespace {

// Longer than any pause between two ticks.
constexpr Duration kStoodStill{5'000'000'000};

Error no_coordinator(net::PeerId peer) {
  return {.kind = ErrorKind::kBadData,
          .where = fmt::format("node-{}", peer.node.value),
          .what = "a member speaks as a coordinator does",
          .fix = "look whether it runs this version"};
}

}  // namespace

Member::Member(Options options, net::Links& links, AskLead ask_lead, Instant now)
    : options_(std::move(options)),
      links_(links),
      next_beat_(now + options_.beat_every),
      coordinator_(
          {.run = options_.run, .seed = options_.seed, .defect = options_.defect, .probes = options_.probes},
          links_, std::move(ask_lead), now),
      peers_({.self = options_.self,
              .listening = options_.listening,
              .machine = options_.machine,
              .defect = options_.defect,
              .probes = options_.probes},
             view_, links_) {
  links_.trust_relay(kCoordinatorNode);
  coordinator_.follow(options_.lead, now);
}

void Member::say(ToCoordinator said, Instant now) {
  if (options_.falsify) options_.falsify(said);
  (void)links_.send(coordinator(), host::Lane::kControl, pack(said), now);
}

void Member::say_here(Instant now) {
  ToCoordinator said;
  said.mutable_here()->set_epoch(view_.epoch().value);
  said.mutable_here()->set_installed(installed_.epoch());
  say(said, now);
  said_ready_ = false;
  const auto again = [&](auto set) {
    ToCoordinator message;
    set(message);
    say(std::move(message), now);
  };
  say_ready(now);
  if (drain_reason_) {
    reach(ControlProbe::kDrainRepeated);
    again([&](auto& message) { message.mutable_drain()->set_reason(*drain_reason_); });
  }
  for (const auto& [track, next] : reported_) progress_.try_emplace(track, next);
  say_beat(now);
  if (at_rest_.report) {
    reach(ControlProbe::kFrozenRepeated);
    again([&](auto& message) { *message.mutable_frozen() = *at_rest_.report; });
  }
  if (!unanswered_.empty() && guarded(Defect::kForgottenRequest)) {
    reach(ControlProbe::kRequestRepeated);
    for (const auto& [number, request] : unanswered_) say(request, now);
  }
  if (leaving_ && leaving_->deadline)
    again([&](auto& message) { message.mutable_leave()->set_reason(leaving_->reason); });
}

void Member::say_beat(Instant now) {
  ToCoordinator said;
  membership::Beat& beat = *said.mutable_beat();
  beat.set_sent_ns(now.ns);
  beat.set_epoch(view_.epoch().value);
  if (const auto pace = meter_.take(now)) {
    beat.set_speed(pace->speed);
    beat.set_own_work(pace->own_work);
    beat.set_step_seconds(pace->step_s);
  }
  if (figures_) *beat.mutable_steps() = *figures_;
  if (options_.work_time) beat.set_work_ms(static_cast<std::uint64_t>(options_.work_time().milliseconds()));
  beat.set_rests_by_wish(at_rest_.by_wish);
  beat.set_moved_bytes(peers_.moved_bytes());
  for (const auto& [track, next] : std::exchange(progress_, {})) {
    membership::Progress& progress = *beat.add_progress();
    progress.set_track(track.value);
    progress.set_next(next.value);
    reported_[track] = next;
  }
  for (const NodeId node : peers_.out_of_reach(now)) beat.add_unreachable(node.value);
  for (const NodeId node : peers_.lost()) beat.add_lost(node.value);
  const MemberLinks::Word word = peers_.on_doubted(now);
  for (const NodeId node : word.hears) beat.add_hears(node.value);
  for (const NodeId node : word.quiet) beat.add_quiet(node.value);
  for (const auto& [peer, broken] : broke_) {
    membership::Broke& broke = *beat.add_broke();
    broke.set_node(peer.node.value);
    broke.set_incarnation(peer.incarnation.value);
    broke.set_rule(broken.rule);
    broke.set_times(broken.times);
  }
  say(std::move(said), now);
}

void Member::on(const net::LinkEvent& event, Instant now) {
  if (ended_) return;
  if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
    if (arrived->message.channel != kControlChannel) return;  // the message is for the engine
    links_.consumed(arrived->receipt, now);
    const bool obeyed = arrived->from == coordinator() || !guarded(Defect::kOldGeneration);
    if (arrived->from.node != kCoordinatorNode)
      return blame(arrived->from, no_coordinator(arrived->from), now);
    if (obeyed) on_message(arrived->message, now);
  } else if (const auto* const up = std::get_if<net::LinkUp>(&event)) {
    on_link_up(up->peer, now);
  } else if (const auto* const bulk = std::get_if<net::BulkUp>(&event)) {
    if (bulk->peer == coordinator()) coordinator_.bulk(true);
    say_ready(now);
  } else if (const auto* const lost = std::get_if<net::BulkBroken>(&event)) {
    if (lost->peer == coordinator()) coordinator_.bulk(false);
  } else if (const auto* const broken = std::get_if<net::LinkBroken>(&event)) {
    peers_.down(broken->peer.node, now);
    if (broken->peer == coordinator()) coordinator_.broken(now);
  } else if (const auto* const fault = std::get_if<net::PeerAtFault>(&event)) {
    blame(fault->peer, fault->error, now);
  } else if (const auto* const failed = std::get_if<net::OpenFailed>(&event)) {
    peers_.open_failed(failed->node, now);
    if (failed->node == kCoordinatorNode) coordinator_.search_soon(now);
  } else if (const auto* const ended = std::get_if<net::LinkEnded>(&event)) {
    on_link_ended(*ended, now);
  }
}

void Member::blame(net::PeerId peer, const Error& error, Instant now) {
  const bool gone = view_.fenced().contains(peer.incarnation);
  if (ended_ || gone || peer.node == kCoordinatorNode || peer.node == options_.self.node) return;
  reach(ControlProbe::kBlamed);
  if (broke_.size() < Accusations::kMostOfOne)
    broke_.try_emplace(peer, Broken{.rule = error.message().substr(0, Accusations::kMostRuleBytes)});
  if (const auto broken = broke_.find(peer); broken != broke_.end()) ++broken->second.times;
  if (peers_.cut(peer, now)) events_.push_back(PeerLost{peer});
  if (coordinator_.linked()) say_beat(now);
}

void Member::part(net::PeerId peer, Instant now) {
  if (ended_ || peer.node == kCoordinatorNode || peer.node == options_.self.node) return;
  if (peers_.part(peer, "too much of it would have to be kept", now)) events_.push_back(PeerLost{peer});
}

void Member::on_link_up(net::PeerId peer, Instant now) {
  if (!peers_.up(peer, now)) return;
  say_ready(now);
  if (peer.node != kCoordinatorNode) return;
  if (peer != coordinator()) {  // another coordinator by now: which generation?
    reach(ControlProbe::kOtherCoordinator);
    return coordinator_.search(now);
  }
  const bool first = coordinator_.up();
  peers_.relay_is_back(now);
  if (first) say_here(now);
}

void Member::on_link_ended(const net::LinkEnded& ended, Instant now) {
  peers_.down(ended.peer.node, now);
  if (ended.peer.node != kCoordinatorNode) {
    // This member may be fenced while the coordinator is out of reach. Then the others know it first.
    if (ended.refused == net::Refused::kFenced) coordinator_.search_soon(now);
    if (peers_.ended(ended.peer, now)) events_.push_back(PeerLost{ended.peer});
    return;
  }
  coordinator_.ended();
  switch (ended.refused) {
    case net::Refused::kFenced:
      if (leaving_ && leaving_->deadline) return end(std::nullopt);
      return end(ended.reason, true);
    case net::Refused::kIncompatible: return end(ended.reason);
    case net::Refused::kElsewhere:  // its address belongs to another process by now
    case net::Refused::kNo: break;
  }
  if (leaving_ && leaving_->deadline && coordinator_.was_heard()) return end(std::nullopt);
  coordinator_.search_now(now);
}

void Member::on_message(const net::Message& message, Instant now) {
  const auto said = unpack_to_member(message);
  if (!said.ok()) return end(said.error());
  if (!coordinator_.heard(Generation(said->generation()), now)) return;
  switch (said->kind_case()) {
    case ToMember::kChange: return on_change(said->change(), now);
    case ToMember::kInstall: return on_install(said->install());
    case ToMember::kBeatSeen: return;
    case ToMember::kLease: return on_lease(said->lease());
    case ToMember::kClaim: return on_claim(said->claim());
    case ToMember::kCommit: return on_commit(said->commit());
    case ToMember::kStop:
      stop_ = said->stop();
      if (leaving_) leaving_->waits_until.reset();
      events_.push_back(StopRequested{stop_->reason()});
      return;
    case ToMember::kReleased: events_.push_back(StopRequested{said->released().reason()}); return;
    case ToMember::kJoining: return peers_.expect(said->joining().member(), now);
    case ToMember::kGone: return on_gone(said->gone(), now);
    case ToMember::kDoubt: return on_doubt(said->doubt(), now);
    case ToMember::KIND_NOT_SET: break;
  }
  CHECK(false, static_cast<int>(said->kind_case()));
}

// Answers at once: a death may wait for the word.
void Member::on_doubt(const membership::Doubt& doubt, Instant now) {
  std::set<NodeId> nodes;
  for (const std::uint64_t node : doubt.nodes()) nodes.insert(NodeId(node));
  peers_.doubt(std::move(nodes));
  say_beat(now);
}

void Member::on_gone(const membership::Gone& gone, Instant now) {
  const net::PeerId peer{NodeId(gone.node()), Incarnation(gone.incarnation())};
  if (peers_.gone(peer, now)) broke_.erase(peer);
}

void Member::on_change(const membership::Change& change, Instant now) {
  told_view_ = true;
  if (change.epoch() <= view_.epoch().value) return say_ready(now);  // it has this view
  if (!view_.follows(change)) {
    return say_here(now);
  }
  if (const auto applied = view_.apply(change); !applied.ok()) return end(applied.error());
  at_rest_.report.reset();
  at_rest_.ended_step = false;
  at_rest_.step_is_open = change.freeze() && change.can_wait();
  if (!at_rest_.step_is_open) peers_.forget_losses();  // all rest, and go on from the same step
  if (const auto lives = view_.lives(options_.self); !lives.ok()) {
    const bool expelled = view_.expelled().contains(options_.self.node);
    return end(lives.error(), lives.error().kind == ErrorKind::kRefused && !expelled);
  }
  std::erase_if(broke_, [this](const auto& one) { return view_.fenced().contains(one.first.incarnation); });
  peers_.view_changed(now);
  if (change.freeze()) rests_ = true;
  if (rests_) links_.set_serving(peers_of(view_));
  say_ready(now);
  // While the view changes, another Install follows, and the engine would not be told of this one. An Install
  // that it has already would take it back to where that one began.
  const bool news = change.installed().epoch() > installed_.epoch();
  const bool installs = change.has_installed() && !change.freeze() && news;
  if (installs) installed_ = change.installed();
  events_.push_back(ViewChanged{.freeze = change.freeze() && serving(), .can_wait = change.can_wait()});
  if (installs) events_.push_back(ViewInstalled{});
}

void Member::say_ready(Instant now) {
  if (!wants_to_serve_ || said_ready_ || serving() || !told_view_) return;
  if (!coordinator_.linked() || !coordinator_.bulk_up()) return;
  if (!peers_.reaches_all()) return;
  if (said_ready_before_) reach(ControlProbe::kReadyRepeated);
  said_ready_ = said_ready_before_ = true;
  ToCoordinator said;
  said.mutable_ready();
  say(std::move(said), now);
}

void Member::on_install(const membership::Install& install) {
  if (install.epoch() <= installed_.epoch()) return;
  installed_ = install;
  at_rest_.by_wish = false;
  meter_.restart();
  if (at_rest_.report && at_rest_.report->epoch() == install.epoch()) at_rest_.report.reset();
  events_.push_back(ViewInstalled{});
}

void Member::on_lease(const membership::LeaseAnswer& said) {
  const auto asked = unanswered_.find(said.number());
  if (asked == unanswered_.end()) return;
  events_.push_back(LeaseAnswered{.number = said.number(),
                                  .sent = {asked->second.lease().sent_ns()},
                                  .answer = {.outcome = static_cast<LeaseOutcome>(said.outcome()),
                                             .duration = {said.duration_ns()},
                                             .holder = Incarnation(said.holder())}});
  unanswered_.erase(asked);
}

void Member::on_claim(const membership::ClaimAnswer& said) {
  if (unanswered_.erase(said.number()) == 0) return;
  const auto claims = [](const auto& records) {
    std::vector<Claim> all;
    for (const membership::ClaimRecord& one : records) {
      all.push_back({TrackId(one.track()),
                     StepNumber(one.step()),
                     {SampleId(one.begin()), SampleId(one.end())},
                     Incarnation(one.by())});
    }
    return all;
  };
  events_.push_back(ClaimAnswered{.number = said.number(),
                                  .answer = {.outcome = static_cast<ClaimOutcome>(said.outcome()),
                                             .granted = claims(said.granted()),
                                             .taken = claims(said.taken())}});
}

void Member::on_commit(const membership::CommitAnswer& said) {
  if (unanswered_.erase(said.number()) == 0) return;
  events_.push_back(
      CommitAnswered{.number = said.number(), .outcome = static_cast<CommitOutcome>(said.outcome())});
}

void Member::lead_answered(const Result<std::string>& answer, Instant now) {
  if (!ended_ && answer.ok()) coordinator_.answered(*answer, now);
}

std::uint64_t Member::ask(ToCoordinator request, Instant now) {
  say(request, now);
  unanswered_.emplace(last_number_, std::move(request));
  return last_number_;
}

std::uint64_t Member::lease(membership::LeaseAsk::Wish wish, const LeaseKeys& keys, Duration duration,
                            Instant now) {
  ToCoordinator request;
  membership::LeaseAsk& ask_for = *request.mutable_lease();
  ask_for.set_number(++last_number_);
  ask_for.set_wish(wish);
  ask_for.mutable_keys()->set_space(keys.space.value);
  ask_for.mutable_keys()->set_begin(keys.begin);
  ask_for.mutable_keys()->set_end(guarded(Defect::kNarrowLease) ? keys.end : keys.begin + 1);
  ask_for.set_duration_ns(duration.ns);
  ask_for.set_sent_ns(now.ns);
  return ask(std::move(request), now);
}

std::uint64_t Member::claim(TrackId track, StepNumber step, SampleRange ids, Instant now) {
  ToCoordinator request;
  membership::ClaimAsk& ask_for = *request.mutable_claim();
  ask_for.set_number(++last_number_);
  ask_for.set_track(track.value);
  ask_for.set_step(step.value);
  ask_for.set_begin(ids.begin.value);
  ask_for.set_end(ids.end.value);
  return ask(std::move(request), now);
}

std::uint64_t Member::commit(TrackId track, StepNumber step, Instant now) {
  ToCoordinator request;
  membership::CommitAsk& ask_for = *request.mutable_commit();
  ask_for.set_number(++last_number_);
  ask_for.set_track(track.value);
  ask_for.set_step(step.value);
  return ask(std::move(request), now);
}

void Member::ready(Instant now) {
  wants_to_serve_ = true;
  say_ready(now);
}

void Member::frozen(std::string report, const std::vector<std::uint64_t>& copies, Instant now) {
  for (const auto& [track, next] : std::exchange(progress_, {})) reported_[track] = next;
  membership::Frozen said;
  said.set_epoch(view_.epoch().value);
  said.set_installed(installed_.epoch());
  said.set_report(std::move(report));
  for (const std::uint64_t copy : copies) said.add_copies(copy);
  for (const membership::Kept& one : at_rest_.kept) *said.add_kept() = one;
  at_rest_.step_is_open = false;
  said.set_ended_step(at_rest_.ended_step);
  for (const auto& [track, next] : reported_) {
    membership::Progress& progress = *said.add_progress();
    progress.set_track(track.value);
    progress.set_next(next.value);
  }
  at_rest_.report = said;
  ToCoordinator message;
  *message.mutable_frozen() = std::move(said);
  say(std::move(message), now);
}

void Member::drain(const std::string& reason, Instant now) {
  drain_reason_ = reason;
  ToCoordinator said;
  said.mutable_drain()->set_reason(reason);
  say(std::move(said), now);
}

void Member::leave(const std::string& reason, Instant now) {
  if (!leaving_) {
    leaving_ = {.reason = {}, .told = options_.told ? options_.told().last : 0};
    if (!stop_) leaving_->waits_until = now + kToldTime;
  }
  leaving_->reason = reason;
  if (leaving_->deadline || may_leave(now)) say_leave(now);
}

void Member::leave_now(const std::string& reason, Instant now) {
  leaving_ = {.reason = reason};
  say_leave(now);
}

// Whether there is nobody who could answer.
bool Member::leaves_alone(Instant now) const { return !stop_ && coordinator_.silence(now) >= kUnheard; }

bool Member::may_leave(Instant now) {
  if (!options_.told || leaves_alone(now)) return true;
  auto& until = leaving_->waits_until;
  const std::uint64_t settled = options_.told().settled;
  if (until && settled > leaving_->settled) until = now + kToldTime;
  leaving_->settled = settled;
  return settled >= leaving_->told || (until && *until <= now);
}

void Member::say_leave(Instant now) {
  if (leaves_alone(now)) return end(std::nullopt);
  leaving_->deadline = now + kLeaveTime;
  ToCoordinator said;
  said.mutable_leave()->set_reason(leaving_->reason);
  say(std::move(said), now);
}

void Member::end(std::optional<Error> error, bool fenced) {
  if (ended_) return;
  ended_ = true;
  events_.push_back(MembershipEnded{.error = std::move(error), .fenced = fenced});
}

void Member::tick(Instant now) {
  if (ended_) return;
  // A machine that was suspended comes back to a run that may still be there.
  if (const Duration stood_still = now - next_beat_; stood_still > kStoodStill)
    coordinator_.excuse(stood_still, now);
  if (leaving_ && leaving_->deadline && *leaving_->deadline <= now) {
    reach(ControlProbe::kLeaveInTime);
    return end(std::nullopt);
  }
  if (leaving_ && !leaving_->deadline && may_leave(now)) say_leave(now);
  if (const Duration silence = coordinator_.silence(now); silence >= options_.patience) {
    return end(Error{.what = "no coordinator was found",
                     .got = fmt::format("silence for {:.0f} s", silence.seconds()),
                     .expected = "one that leads the run",
                     .fix = "start the coordinator again, then join"});
  }
  if (next_beat_ <= now) {
    next_beat_ = now + options_.beat_every;
    if (coordinator_.linked()) {
      // Beats do not pile up for a coordinator out of reach: the next one says all that they would have said.
      if (coordinator_.connected()) say_beat(now);
      peers_.reroute(now);
    }
    peers_.connect(now);
  }
  coordinator_.tick(now);
}

std::optional<Instant> Member::next_wakeup() const {
  if (ended_) return std::nullopt;
  Instant wake = next_beat_;
  if (const auto search = coordinator_.next_wakeup()) wake = std::min(wake, *search);
  if (leaving_ && leaving_->deadline) wake = std::min(wake, *leaving_->deadline);
  return wake;
}

}  // namespace gossamer::cluster
