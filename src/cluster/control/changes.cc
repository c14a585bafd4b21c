// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/run_placement.h"

namespace gossamer::cluster {

namespace {

// How often it is asked whether the first view still waits for others.
constexpr Duration kLookEvery{1'000'000'000};
constexpr std::string_view kNoTaker = "nobody can take its part over";

// Why too few members serve for a placement; "": there are enough.
std::string too_few(const LedRun& run, const CoordinatorOptions& options) {
  const bool first = run.installed.epoch() == 0;
  const auto serving =
      std::count_if(run.view.members().begin(), run.view.members().end(),
                    [](const auto& one) { return one.second.state() == membership::SERVING; });
  const std::size_t needed = first ? options.first_members : 1;
  if (static_cast<std::size_t>(serving) < needed && !all_drain(run))
    return fmt::format("{} of {} members serve", serving, needed);
  return first && options.waits_for ? options.waits_for(run.view) : std::string();
}

bool all_that_live_rest(const LedRun& run, const std::map<NodeId, membership::Frozen>& reports) {
  const auto lives = [&](NodeId node) { return run.members.contains(node); };
  return std::ranges::none_of(without_report(run.view, reports), lives);
}

membership::Stopping stopping_record(const RunEnd& end) {
  membership::Stopping stopping;
  stopping.set_reason(end.reason());
  stopping.set_failed(end.failure().has_value());
  stopping.set_waits(end.waits());
  stopping.set_told(end.told());
  return stopping;
}

using Reports = std::map<NodeId, membership::Frozen>;

// The reports of some members.
Reports reports_of(Reports reports, const std::function<bool(NodeId)>& are_wanted) {
  std::erase_if(reports, [&](const auto& one) { return !are_wanted(one.first); });
  return reports;
}

membership::StopAsked asked_to_stop(const RunEnd& end) {
  membership::StopAsked asked;
  asked.set_reason(end.reason());
  asked.set_failed(end.failure().has_value());
  return asked;
}

// Whether the beat is of a member of the view, which knows it.
bool knows_view(const LedRun& run, const LedMember& member, const membership::Beat& said) {
  return said.epoch() == run.view.epoch().value && run.view.find(peer_of(member.record)) != nullptr;
}

// Whether it has lost messages of another member of the view.
bool tells_of_loss(const LedRun& run, const membership::Beat& said) {
  const auto in_view = [&run](std::uint64_t node) { return run.view.members().contains(NodeId(node)); };
  return std::ranges::any_of(said.lost(), in_view);
}

// Whether all that are members are heard, and none has to go.
bool no_trouble_is_known(const LedRun& run, Instant now) {
  const auto hears = [&](const auto& one) {
    return !run.members.contains(one.first) || run.hears(one.first, now);
  };
  return run.departures.nodes().empty() && std::ranges::all_of(run.view.members(), hears);
}

std::string words_of_wait(const std::set<NodeId>& silent) {
  std::vector<std::uint64_t> numbers;
  for (const NodeId node : silent) numbers.push_back(node.value);
  return fmt::format("the others lack what node {} holds, which is silent; they wait for ten minutes at most",
                     fmt::join(numbers, ", "));
}

}  // namespace

Changes::Changes(const Leadership& leadership, Books& books)
    : options_(leadership.options),
      workload_(leadership.workload),
      run_(leadership.run),
      outbox_(leadership.outbox),
      books_(books),
      next_(leadership),
      teller_(leadership),
      rest_clock_(options_.freeze_time, options_.patience) {}

void Changes::take_up(const std::optional<membership::Stopping>& stopping, Instant now) {
  next_.take_up();
  if (run_.installed.epoch() != 0) see_idle_members(run_, now);
  next_rebalance_ = now + kRebalanceEvery;
  if (stopping) {
    reach(ControlProbe::kStopTakenUp);
    if (stopping->failed()) end_.fail({.what = "the run has failed", .got = stopping->reason()});
  }
  const bool waits = stopping && stopping->waits();
  if (stopping && stopping->told()) end_.told_before(now);
  if (waits) end_once_installed({.now = now, .text = stopping->reason()});
  if (stopping && !waits) {
    advance(Event::kStopFound, {.now = now, .text = stopping->reason()});
  } else if (waits || run_.view.epoch().value > run_.installed.epoch()) {
    reach(ControlProbe::kTakenUpInChange);
    advance(Event::kTakenUp, {.now = now});
  }
}

void Changes::here(LedMember& member, const membership::Here& said, Instant now) {
  const bool knows_view = said.epoch() == run_.view.epoch().value;
  if (!knows_view || said.epoch() == 0) teller_.tell_view(member, Epoch(said.epoch()), rest());
  member.told = run_.view.epoch();
  rest_clock_.came(NodeId(member.record.node()), now);
  advance(Event::kHere, {.now = now, .member = &member, .here = &said});
}

void Changes::install_again(const Cause& cause) { teller_.tell_placement_again(*cause.member, *cause.here); }

void Changes::introduced(const LedMember& member, Instant now) {
  advance(Event::kIntroduced, {.now = now, .member = &member});
}

void Changes::ready(LedMember& member, Instant now) {
  if (member.record.state() != membership::JOINING || member.wants_to_drain) return;
  member.wants_to_serve = true;
  if (!end_.is_set()) want_in_order(now);
}

void Changes::drain(LedMember& member, Instant now) {
  if (member.record.state() == membership::DRAINING) return;
  member.wants_to_drain = true;
  if (member.record.state() != membership::JOINING) return want_in_order(now);
  member.wants_to_serve = false;
  teller_.release(member, "it did not serve yet");
}

void Changes::lost_links(LedMember& member, const membership::Beat& said, Instant now) {
  // Messages between two members are lost, so all come to rest and go on from the same step.
  if (tells_of_loss(run_, said) && knows_view(run_, member, said) &&
      options_.view_change == ViewChange::kFrozen && member.losses.take(now))
    want_change(now);
}

// Deaths interrupt a change. Members that come or go in order wait for its end.
void Changes::want_change(Instant now) {
  wanted_ = Wanted::kAtOnce;
  if (open_steps_.waits()) return hurry(OpenSteps::Event::kTrouble, now);
  advance(Event::kWanted, {.now = now});
}

void Changes::want_in_order(Instant now) {
  if (wanted_ == Wanted::kNo) wanted_ = Wanted::kInOrder;
  advance(may_wait(now) ? Event::kWantedInOrder : Event::kWanted, {.now = now});
}

// Members rest already but in one phase, and there is nothing that they could end.
bool Changes::may_wait(Instant now) const {
  return phase_ == Phase::kSettled && workload_.ends_open_steps() && open_steps_.may_begin() &&
         wanted_ != Wanted::kAtOnce && !end_.is_set() && options_.view_change == ViewChange::kFrozen &&
         no_trouble_is_known(run_, now);
}

// The step that is open may never end.
void Changes::hurry(OpenSteps::Event why, Instant now) {
  if (!open_steps_.take(why, now)) return;
  advance(Event::kHurried, {.now = now});
}

// What a member had may be more rows than one write takes, and this coordinator may end between two writes.
// Its successor must know first that the end waits. It would else let the others go, and nobody would take
// over what the dead one held.
void Changes::about_to_fence(Fenced where, Instant now) {
  if (where == Fenced::kJoining) return;
  if (phase_ == Phase::kStopping && where == Fenced::kInView) let_end_wait(end_.reason(), now);
  next_.reserve_epoch();
}

void Changes::gone(net::PeerId peer) {
  reports_.erase(peer.node);
  rest_clock_.gone(peer.node);
  next_.gone(peer);
}

void Changes::fenced(Fenced where, Instant now) {
  // No report changes before the next placement.
  const bool cleared = members_rest() && wanted_ == Wanted::kNo && all_that_live_rest(run_, reports_);
  const bool in_order = where == Fenced::kLeft && may_wait(now) && only_the_drained_left(run_);
  Event event = cleared ? Event::kCleared : in_order ? Event::kWantedInOrder : Event::kFenced;
  if (phase_ == Phase::kStopping && where == Fenced::kInView) event = Event::kDiedAtEnd;
  if (where == Fenced::kJoining) event = Event::kJoiningFenced;
  advance(event, {.now = now, .text = end_.reason()});
}

void Changes::begin_anew(const Cause& cause) {
  reach(ControlProbe::kChangeBegunAnew);
  begin_change(cause);
}

// The times of rest_clock_ begin with a change that cannot wait.
void Changes::begin_in_order(const Cause& cause) {
  (void)open_steps_.take(OpenSteps::Event::kBegins, cause.now);
  reports_.clear();
  fencing_ = {};
  announce(rest());
  if (all_rest()) advance(Event::kAllRest, {.now = cause.now});
}

void Changes::begin_change(const Cause& cause) {
  (void)open_steps_.take(OpenSteps::Event::kOver, cause.now);
  rest_clock_.begin(awaited(), cause.now);
  reports_.clear();
  fencing_ = {};
  run_.departures.rest();
  announce(rest());
  outbox_.then([this, epoch = run_.view.epoch()] {
    if (epoch == run_.view.epoch() && members_rest()) rest_clock_.left(outbox_.now());
  });
  if (options_.view_change == ViewChange::kAnnounced || !options_.guarded(Defect::kNoFreeze) || all_rest())
    advance(Event::kAllRest, {.now = cause.now});
}

void Changes::go_on_without_fenced(const Cause& cause) {
  announce(ViewTeller::Rest::kNo);
  advance(Event::kAllRest, {.now = cause.now});
}

// Begins the next epoch, and tells it to all. Nobody begins to serve in a run that is to end: it could die at
// once, and keep the others from leaving.
void Changes::announce(ViewTeller::Rest rest) {
  wanted_ = Wanted::kNo;
  const auto joins = end_.is_set() ? NextView::Joins::kStay : NextView::Joins::kMayServe;
  teller_.changed(next_.begin(joins), rest);
}

bool Changes::awaits(net::PeerId peer, const membership::Frozen& said) const {
  if (said.epoch() != run_.view.epoch().value || run_.view.find(peer) == nullptr) {
    reach(ControlProbe::kLateFrozen);
    return false;
  }
  return row(Event::kReport) != nullptr;
}

void Changes::rests(const LedMember& member, const membership::Frozen& said, Instant now) {
  advance(Event::kReport, {.now = now, .member = &member, .report = &said});
}

void Changes::keep_report(const Cause& cause) {
  reports_[NodeId(cause.member->record.node())] = *cause.report;
  if (cause.report->ended_step()) (void)open_steps_.take(OpenSteps::Event::kStepEnded, cause.now);
  if (all_rest()) advance(Event::kAllRest, {.now = cause.now});
}

// Members that go on have nothing to hand over. At the end each saves what it holds.
bool Changes::may_lose() const {
  return options_.view_change == ViewChange::kFrozen && run_.installed.epoch() != 0 &&
         phase_ != Phase::kStopping && options_.guarded(Defect::kLossUnasked);
}

// A member that was told of the end may still save. While all others are there, they can take its things
// over.
bool Changes::can_lose(const std::set<NodeId>& silent, Instant now) {
  if (phase_ == Phase::kStopping) return hung_up(run_, silent) || !a_holder_has_left(run_);
  if (!may_lose()) return true;
  hurry(OpenSteps::Event::kTrouble, now);
  advance(Event::kSilent, {.now = now});
  const Reports others = reports_of(reports_, [&](NodeId node) { return !silent.contains(node); });
  if (without_report(run_.view, others) != silent) return false;
  const Reports heard = reports_of(others, [&](NodeId node) { return run_.hears(node, now); });
  if (have_all(at_rest(heard), now)) return true;
  advance(Event::kMissed, {.now = now, .text = words_of_wait(silent)});
  return false;
}

void Changes::wait_for_silent(const Cause& cause) {
  reach(ControlProbe::kWaitsForSilent);
  if (shortage_ != cause.text) outbox_.note("waiting", {}, cause.text);
  shortage_ = cause.text;
  if (wanted_ != Wanted::kNo) advance(Event::kWaited, {.now = cause.now});
}

void Changes::fall_short(const Cause& cause) {
  if (run_.installed.epoch() != 0) reach(ControlProbe::kShortWhileRunning);
  if (shortage_ != cause.text) outbox_.note("short", {}, cause.text);
  shortage_ = cause.text;
  release_the_leaving(cause);
}

// Lets leaving members go while nobody is joining, or for too long. They would wait for ever for somebody to
// take their part over. While members work, those are let go only if all drain: no other member is kept from
// its steps then.
void Changes::release_the_leaving(const Cause& cause) {
  if (!any_is(run_, membership::DRAINING) || (phase_ == Phase::kSettled && !all_drain(run_)))
    return release_clock_.end();
  if (!release_clock_.may_go(any_is(run_, membership::JOINING), cause.now)) return;
  for (const auto& [node, member] : run_.members) {
    if (member.record.state() == membership::DRAINING) teller_.release(member, kNoTaker);
  }
}

// If all members drain, they work on until another one serves. If none joins, they are released, and agree on
// the step after which all save what they hold: at rest they may be a step apart.
void Changes::decide(const Cause& cause) {
  const Instant now = cause.now;
  rest_clock_.end();
  (void)open_steps_.take(OpenSteps::Event::kOver, now);
  if (fencing_ = due_at_rest(at_rest(reports_), now); !fencing_.nodes.empty()) return;
  std::string few = too_few(run_, options_);
  next_look_ = !few.empty() && options_.waits_for ? std::optional(now + kLookEvery) : std::nullopt;
  if (!few.empty()) {
    advance(Event::kTooLittle, {.now = now, .text = std::move(few)});
  } else {
    place(now);
  }
  if (!fencing_.nodes.empty()) return;
  if (end_.waits()) return advance(Event::kStopDue, {.now = now, .text = end_.reason()});
  if (phase_ == Phase::kSettled) release_the_leaving(cause);
  if (wanted_ != Wanted::kNo) advance(may_wait(now) ? Event::kWantedInOrder : Event::kWaited, {.now = now});
}

// In a run that is to end all keep what they hold, if they can: nothing needs to move before it is saved. If
// a part is lost, nobody goes on: each saves what it holds, which may be whole with files of the dead.
void Changes::place(Instant now) {
  const bool stays = end_.waits() && holders_rest(run_, reports_);
  const auto placed =
      stays ? Result<placement::Decision>(placement::Decision{.placement = current_placement(run_)})
            : placed_at_rest(at_rest(reports_), members_to_place(run_, now), options_.placement);
  const bool announced = options_.view_change == ViewChange::kAnnounced && run_.installed.epoch() != 0;
  if (!placed.ok()) {
    reach(ControlProbe::kShortOfMemory);
    advance(Event::kTooLittle, {.now = now, .text = placed.error().message()});
  } else if (const auto odd = says_too_much(at_rest(reports_), placed->placement)) {
    fencing_ = {.nodes = {*odd}, .why = kContradicts};
  } else if (announced && placed->change == placement::Change::kNone) {
    advance(Event::kUnchanged, {.now = now});
  } else if (!end_.waits() || !loses_a_part(at_rest(reports_), placed->placement)) {
    advance(Event::kPlaced, {.now = now, .placed = &placed->placement});
  }
}

AtRest Changes::at_rest(const std::map<NodeId, membership::Frozen>& reports) {
  const std::optional<MarkLedger>& marks = books_.marks();
  return {workload_, run_, reports, marks ? std::optional(marks->committed()) : std::nullopt};
}

void Changes::fail(const Decision& decision, Instant now) {
  end_.fail(*decision.failure);
  stop(decision.failure->message(), now);
}

// Nobody goes on with a part that is lost: members would begin it anew, and save that as if it were learnt.
// At rest each saves what it holds, which may be whole with files of the dead.
void Changes::install(const Cause& cause) {
  const HoldingMap after = holdings_of(*cause.placed);
  const AtRest all = at_rest(reports_);
  const Decision decision = cluster::decide(all, *cause.placed);
  workload_.installed(decision);
  if (decision.lost && decision.failure) return fail(decision, cause.now);
  for (host::Change& change : put_holdings(run_.holdings, after)) outbox_.put(std::move(change));
  run_.holdings = after;
  books_.placed(decision.committed);
  run_.installed = installed_as(all, decision, *cause.placed);
  outbox_.put(put_installed(run_.installed));
  (void)open_steps_.take(OpenSteps::Event::kInstalled, cause.now);
  see_idle_members(run_, cause.now);
  run_.departures.installed(cause.now);
  shortage_.clear();
  next_rebalance_ = cause.now + kSettlesIn;
  outbox_.note("installed", {},
               fmt::format("{} members, {} things", run_.view.members().size(), after.size()));
  teller_.placed();
  if (decision.failure) fail(decision, cause.now);
}

void Changes::rebalance(const Cause& cause) {
  if (run_.installed.epoch() == 0) return;
  const auto placed = placed_anew(workload_, run_, options_.placement, cause.now);
  if (!placed.ok() || placed->change == placement::Change::kNone) return;
  reach(ControlProbe::kRebalanced);
  outbox_.note("rebalances", {}, changes_of(run_.holdings, placed->placement));
  advance(may_wait(cause.now) ? Event::kWantedInOrder : Event::kPays, {.now = cause.now});
}

void Changes::stop(const std::string& reason, Instant now) {
  advance(Event::kStop, {.now = now, .text = reason});
}

void Changes::stop_unheard(const std::string& reason, Instant now) {
  const bool settled = phase_ == Phase::kSettled && !run_.holdings.empty();
  advance(settled ? Event::kStopUnheard : Event::kStop, {.now = now, .text = reason});
}

// Members come to rest a step apart, and at rest none can agree with another. With the next Install all go on
// from the same step, and save what they hold after the step that follows.
void Changes::end_once_installed(const Cause& cause) {
  if (!end_.waits()) let_end_wait(cause.text, cause.now);
}

void Changes::let_end_wait(const std::string& reason, Instant now) {
  reach(ControlProbe::kStopWaits);
  end_.wait(reason, now);
  outbox_.put(put_stopping(stopping_record(end_)));
  outbox_.note("ending", {}, reason);
}

// Members that rest because something is missing can still save the same step, if all holders are there.
void Changes::end_after_change(const Cause& cause) {
  end_once_installed(cause);
  if (run_.holdings.empty()) return advance(Event::kStopDue, {.now = cause.now, .text = cause.text});
  begin_change(cause);
}

void Changes::end_run(const Cause& cause) {
  end_.tell(cause.text, cause.now);
  outbox_.put(put_stopping(stopping_record(end_)));
  begin_stop(cause);
}

void Changes::begin_stop(const Cause& cause) {
  end_.tell(cause.text, cause.now);
  rest_clock_.end();
  outbox_.note("stopping", {}, cause.text);
  for (const auto& [node, member] : run_.members) teller_.tell_stop(member, stop_asked());
}

void Changes::say_stop(const Cause& cause) {
  reach(ControlProbe::kHereWhileStopping);
  teller_.tell_stop(*cause.member, stop_asked());
}

membership::StopAsked Changes::stop_asked() const { return asked_to_stop(end_); }

void Changes::tick(const std::function<bool()>& all_heard, Instant now) {
  if (next_look_ && *next_look_ <= now) {  // the time that the first view waits has an end
    const bool waits = phase_ == Phase::kShort;
    next_look_ = waits ? std::optional(now + kLookEvery) : std::nullopt;
    if (waits && too_few(run_, options_) != shortage_) advance(Event::kWaited, {.now = now});
  }
  if (open_steps_.is_due(now)) hurry(OpenSteps::Event::kTimeOver, now);
  if (release_clock_.take_due(now)) advance(Event::kNobodyReady, {.now = now});
  if (end_.due(now)) advance(Event::kStopDue, {.now = now, .text = end_.reason()});
  if (phase_ == Phase::kWaiting && all_rest() && all_heard()) advance(Event::kAllRest, {.now = now});
  if (!next_rebalance_ || *next_rebalance_ > now) return;
  next_rebalance_ = now + kRebalanceEvery;
  if (all_heard()) advance(Event::kRebalanceDue, {.now = now});
}

void Changes::beats(LedMember& member, const membership::Beat& said, Instant now) {
  const bool rests = said.rests_by_wish() && phase_ == Phase::kSettled && knows_view(run_, member, said);
  if (rests && member.losses.take(now)) want_in_order(now);
  if (!options_.guarded(Defect::kFreezeTimeFences)) return;
  rest_clock_.beat(NodeId(member.record.node()), said.epoch() == run_.view.epoch().value, said.work_ms(),
                   now);
}

std::set<NodeId> Changes::take_restless(const RestClock::Hearing& hearing, Instant now) {
  if (const auto next = rest_clock_.next_look(); !next || *next > now) return {};
  rest_clock_.steps_take(agreed_step_seconds(run_));
  RestClock::Late late = rest_clock_.late(awaited(), hearing, now);
  if (late.nodes.empty()) return {};
  const Reports heard = reports_of(reports_, hearing.hears);  // a member may have died since it reported
  const bool spared = !go_on_without(late.nodes, at_rest(heard), options_.placement, now);
  if (spared) reach(ControlProbe::kRestlessSpared);
  if (heard.empty() && !any_waits_to_serve(run_, hearing.hears)) late.given_up.clear();
  std::set<NodeId> restless = spared ? std::move(late.given_up) : std::move(late.nodes);
  if (!restless.empty()) reach(ControlProbe::kRestless);
  return restless;
}

std::optional<Instant> Changes::next_wakeup() const {
  const auto clocks = sooner(rest_clock_.next_look(), release_clock_.next_look());
  return sooner(sooner(next_rebalance_, next_look_),
                sooner(sooner(clocks, open_steps_.next_look()), end_.next_wakeup()));
}

}  // namespace gossamer::cluster
