// SPDX-License-Identifier: Apache-2.0
//
// Coordinator, the part that changes the view: epochs, coming to rest, placement.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/control/coordinator.h"

namespace gossamer::cluster {

using membership::Change;
using membership::ToMember;

void Coordinator::want_change(Instant now) {
  change_wanted_ = true;
  // Deaths interrupt a change. Members that come or go in order wait for its end.
  if (phase_ == Phase::kSettled || phase_ == Phase::kShort) return begin_change(now);
  reach(ControlProbe::kChangeWaits);
}

// The store's epoch rises before any entry of the next epoch is written. If only a part of these entries gets
// there, the successor sees that an epoch was begun.
void Coordinator::reserve_epoch() {
  if (epoch_reserved_) return;
  epoch_reserved_ = true;
  outbox_.put(put_epoch(Epoch(view_.epoch().value + 1), view_.fenced()));
}

Change Coordinator::next_difference() {
  Change change;
  change.set_from(view_.epoch().value);
  change.set_epoch(view_.epoch().value + 1);
  change.set_freeze(options_.view_change == ViewChange::kFrozen);
  for (auto& [node, member] : members_) {
    const membership::State before = member.record.state();
    if (member.wants_to_serve && before == membership::JOINING) member.record.set_state(membership::SERVING);
    if (member.wants_to_drain) member.record.set_state(membership::DRAINING);
    if (member.record.state() == before) continue;
    if (options_.defect != Defect::kForgottenMember) outbox_.put(put_member(member.record));
    *change.add_members() = member.record;
    note(member.record.state() == membership::SERVING ? "serving" : "draining", peer_of(member.record),
         member.record.name());
  }
  for (const FencedIncarnations::Run& since : fenced_since_) {
    membership::FencedRun& run = *change.add_fenced();
    run.set_first(since.first.value);
    run.set_last(since.last.value);
  }
  fenced_since_.clear();
  return change;
}

void Coordinator::begin_change(Instant now) {
  if (phase_ == Phase::kFreezing) reach(ControlProbe::kChangeBegunAnew);
  reserve_epoch();
  epoch_reserved_ = false;
  change_wanted_ = false;
  Change change = next_difference();
  const Result<void> applied = view_.apply(change);
  CHECK(applied.ok(), applied.error().message());
  outbox_.put(put_epoch(view_.epoch(), view_.fenced()));
  history_.push_back(change);
  if (history_.size() > kHistory) history_.pop_front();
  reports_.clear();
  phase_ = Phase::kFreezing;
  freeze_deadline_ = now + options_.freeze_time;
  for (auto& [node, member] : members_) {
    if (!member.told) continue;  // it will say Here
    if (member.told->value == change.from()) {
      ToMember message;
      *message.mutable_change() = change;
      tell(member, std::move(message));
    } else {
      send_view(member, *member.told);
    }
    member.told = view_.epoch();
  }
  if (options_.view_change == ViewChange::kAnnounced || options_.defect == Defect::kNoFreeze || all_rest())
    decide(now);
}

void Coordinator::send_view(Member& member, Epoch has) {
  const auto first = std::find_if(history_.begin(), history_.end(),
                                  [&](const Change& change) { return change.from() == has.value; });
  if (has.value != 0 && first != history_.end()) {
    if (std::next(first) != history_.end()) reach(ControlProbe::kSeveralDifferences);
    for (auto change = first; change != history_.end(); ++change) {
      ToMember message;
      *message.mutable_change() = *change;
      // Members come to rest only for the last change.
      if (std::next(change) != history_.end() || phase_ != Phase::kFreezing)
        message.mutable_change()->set_freeze(false);
      tell(member, std::move(message));
    }
  } else {
    // A member with epoch 0 gets the view of epoch 0, too. It must learn that there is nobody to reach yet.
    if (has.value != 0) reach(ControlProbe::kWholeView);
    ToMember message;
    Change& change = *message.mutable_change();
    change = view_.whole();
    change.set_freeze(options_.view_change == ViewChange::kFrozen && phase_ == Phase::kFreezing);
    if (installed_.epoch() != 0) *change.mutable_installed() = install_message();
    tell(member, std::move(message));
  }
  member.told = view_.epoch();
}

membership::Install Coordinator::install_message() const {
  membership::Install install;
  install.set_epoch(installed_.epoch());
  install.set_decision(installed_.decision());
  for (const auto& [thing, node] : holdings_) {
    membership::Holding& holding = *install.add_holdings();
    holding.set_thing(thing.value);
    holding.set_node(node.value);
  }
  return install;
}

void Coordinator::send_install(const Member& member) {
  ToMember message;
  *message.mutable_install() = install_message();
  tell(member, std::move(message));
}

bool Coordinator::all_rest() const {
  return std::all_of(view_.members().begin(), view_.members().end(),
                     [&](const auto& one) { return reports_.contains(one.first); });
}

void Coordinator::frozen(Member& member, const membership::Frozen& said, Instant now) {
  const net::PeerId peer = peer_of(member.record);
  if (said.epoch() != view_.epoch().value || view_.find(peer) == nullptr)
    return reach(ControlProbe::kLateFrozen);
  if (phase_ != Phase::kFreezing) return;
  if (!workload_.readable(said.report())) return fence(peer.node, "its report cannot be read", now);
  if (!applied(member, said.progress(), now)) return;
  forget_others(peer.incarnation, said.progress());
  reports_[peer.node] = said;
  if (all_rest()) decide(now);
}

void Coordinator::fall_short(std::string what) {
  phase_ = Phase::kShort;
  if (installed_.epoch() != 0) reach(ControlProbe::kShortWhileRunning);
  if (shortage_ != what) note("short", {}, what);
  shortage_ = std::move(what);
  release_the_leaving();
}

// Lets leaving members go while nobody is joining. They would wait for ever for somebody to take their part
// over.
void Coordinator::release_the_leaving() {
  const auto joins = [](const auto& one) { return one.second.record.state() == membership::JOINING; };
  if (std::any_of(members_.begin(), members_.end(), joins)) return;
  for (const auto& [node, member] : members_) {
    if (member.record.state() == membership::DRAINING) release(member);
  }
}

void Coordinator::release(const Member& member) {
  reach(ControlProbe::kReleased);
  ToMember message;
  message.mutable_released()->set_reason("nobody can take its part over");
  tell(member, std::move(message));
}

std::vector<placement::Thing> Coordinator::things_with_copies() const {
  std::vector<placement::Thing> things = workload_.things();
  std::map<placement::ThingId, std::size_t> places;
  for (std::size_t i = 0; i < things.size(); ++i) places[things[i].id] = i;
  for (const auto& [node, report] : reports_) {
    for (const std::uint64_t copy : report.copies()) {
      const auto place = places.find(placement::ThingId(copy));
      if (place != places.end()) things[place->second].copies.emplace_back(node.value);
    }
  }
  return things;
}

// The paces of members: measured, or else believed at the last placement. A member due for a trial has none.
std::map<NodeId, Pace> Coordinator::known_paces() const {
  std::map<NodeId, Pace> paces;
  for (const membership::Installed::Speed& one : installed_.speeds())
    paces[NodeId(one.node())] = {.speed = one.speed(), .own_work = one.own_work()};
  for (const auto& [node, member] : members_) {
    if (const auto measured = member.pace.pace()) paces[node] = *measured;
    if (member.trial.due(now_)) paces.erase(node);
  }
  return paces;
}

// Members as place() takes them. A member of unknown pace gets the others' mean speed for each core, and
// their least own work.
std::vector<placement::Member> Coordinator::placeable() const {
  const std::map<NodeId, Pace> paces = known_paces();
  double speed = 0;
  double cores = 0;
  double own_work = std::numeric_limits<double>::infinity();
  for (const auto& [node, pace] : paces) {
    const auto member = members_.find(node);
    if (member == members_.end()) continue;
    speed += pace.speed;
    cores += std::max<double>(member->second.record.cores(), 1);
    own_work = std::min(own_work, pace.own_work);
  }
  const Pace per_core = cores > 0 ? Pace{.speed = speed / cores, .own_work = own_work} : Pace{.speed = 1};
  std::vector<placement::Member> members;
  for (const auto& [node, record] : view_.members()) {
    const auto known = paces.find(node);
    const double guess = per_core.speed * std::max<double>(record.cores(), 1);
    members.push_back({.id = placement::MemberId(node.value),
                       .limit_bytes = record.memory_bytes(),
                       .speed = known == paces.end() ? guess : known->second.speed,
                       .service = record.state() == membership::DRAINING ? placement::Service::kDraining
                                                                         : placement::Service::kServing,
                       .own_work = known == paces.end() ? per_core.own_work : known->second.own_work});
  }
  return members;
}

placement::Placement Coordinator::current_placement() const {
  placement::Placement current;
  for (const auto& [thing, node] : holdings_)
    current.holdings.push_back({thing, placement::MemberId(node.value)});
  for (const membership::Installed::Speed& one : installed_.speeds())
    current.speeds.push_back({placement::MemberId(one.node()), one.speed(), one.own_work()});
  return current;
}

void Coordinator::decide(Instant now) {
  freeze_deadline_.reset();
  const auto serving = std::count_if(view_.members().begin(), view_.members().end(), [](const auto& one) {
    return one.second.state() == membership::SERVING;
  });
  const std::size_t needed = installed_.epoch() == 0 ? options_.first_members : 1;
  if (static_cast<std::size_t>(serving) < needed) {
    fall_short(fmt::format("{} of {} members serve", serving, needed));
  } else {
    const auto placed =
        placement::place(things_with_copies(), placeable(), current_placement(), options_.placement);
    const bool announced = options_.view_change == ViewChange::kAnnounced && installed_.epoch() != 0;
    if (!placed.ok()) {
      reach(ControlProbe::kShortOfMemory);
      fall_short(placed.error().message());
    } else if (announced && placed->change == placement::Change::kNone) {
      reach(ControlProbe::kAnnouncedAlone);
      phase_ = Phase::kSettled;  // members need nothing but the new view
    } else {
      HoldingMap after;
      for (const placement::Holding& one : placed->placement.holdings)
        after[one.thing] = NodeId(one.member.value);
      install(after, placed->placement, now);
    }
  }
  if (change_wanted_ && phase_ != Phase::kFreezing && phase_ != Phase::kStopping) begin_change(now);
}

void Coordinator::see_who_is_idle(Instant now) {
  std::set<NodeId> holders;
  for (const auto& [thing, node] : holdings_) holders.insert(node);
  for (auto& [node, member] : members_) {
    const bool holds = holders.contains(node);
    if (holds && member.trial.due(now)) member.pace = {};  // its earlier measurements speak against it
    member.trial.placed(holds, now);
  }
}

void Coordinator::install(const HoldingMap& after, const placement::Placement& placed, Instant now) {
  std::optional<StepNumber> committed;
  if (marks_) committed = marks_->committed();
  const Decision decision = workload_.decide(
      {.view = view_, .reports = reports_, .before = holdings_, .after = after, .committed = committed});
  CHECK(decision.bytes.size() <= kMaxDecisionBytes, decision.bytes.size());
  if (marks_ && decision.committed) {
    const CorrectionOutcome outcome = marks_->correct(*decision.committed);
    if (outcome == CorrectionOutcome::kRaised) {
      reach(ControlProbe::kRaised);
      outbox_.put(put_committed(*decision.committed));
    }
  }
  for (host::Change& change : put_holdings(holdings_, after)) outbox_.put(std::move(change));
  holdings_ = after;
  installed_.set_epoch(view_.epoch().value);
  installed_.set_decision(decision.bytes);
  installed_.clear_speeds();
  for (const placement::BelievedSpeed& one : placed.speeds) {
    membership::Installed::Speed& speed = *installed_.add_speeds();
    speed.set_node(one.member.value);
    speed.set_speed(one.speed);
    speed.set_own_work(one.own_work);
  }
  outbox_.put(put_installed(installed_));
  see_who_is_idle(now);
  phase_ = Phase::kSettled;
  shortage_.clear();
  next_rebalance_ = now + kSettlesIn;
  note("installed", {}, fmt::format("{} members, {} things", view_.members().size(), after.size()));
  for (const auto& [node, member] : members_) {
    if (member.told) send_install(member);
  }
  if (decision.failure) {
    failure_ = decision.failure;
    stop(failure_->message(), now);
  }
}

namespace {

using Holdings = std::map<NodeId, std::size_t>;

// Lists the members that are to hold more or fewer things than now, with their measurements.
std::string changes_of(const Holdings& before, const placement::Placement& placed) {
  Holdings after;
  for (const placement::Holding& one : placed.holdings) ++after[NodeId(one.member.value)];
  std::vector<std::string> changes;
  for (const placement::BelievedSpeed& one : placed.speeds) {
    const NodeId node(one.member.value);
    const auto held = before.find(node);
    const std::size_t had = held == before.end() ? 0 : held->second;
    if (had == after[node]) continue;
    changes.push_back(fmt::format("node {} {} -> {} things ({:.3g} a second, own work {:.3g})", node.value,
                                  had, after[node], one.speed, one.own_work));
  }
  const std::size_t told = std::min<std::size_t>(changes.size(), 16);
  return fmt::format("{}{}",
                     fmt::join(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(told), ", "),
                     told < changes.size() ? ", ..." : "");
}

}  // namespace

// The time of a step as the members have measured it, waiting included: the median, 0 if none is measured.
double Coordinator::step_seconds() const {
  std::vector<double> told;
  for (const auto& [node, pace] : known_paces()) {
    if (pace.step_s > 0) told.push_back(pace.step_s);
  }
  if (told.empty()) return 0;
  const auto middle = told.begin() + static_cast<std::ptrdiff_t>(told.size() / 2);
  std::ranges::nth_element(told, middle);
  return *middle;
}

void Coordinator::rebalance(Instant now) {
  next_rebalance_ = now + kRebalanceEvery;
  if (phase_ != Phase::kSettled || installed_.epoch() == 0) return;
  placement::Options options = options_.placement;
  options.step_s = step_seconds();
  const auto placed = placement::place(workload_.things(), placeable(), current_placement(), options);
  if (!placed.ok() || placed->change == placement::Change::kNone) return;
  reach(ControlProbe::kRebalanced);
  Holdings before;
  for (const auto& [thing, node] : holdings_) ++before[node];
  note("rebalances", {}, changes_of(before, placed->placement));
  begin_change(now);
}

}  // namespace gossamer::cluster
