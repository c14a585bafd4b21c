// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/view_teller.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cluster/control/records.h"
#include "cluster/control/run_placement.h"
#include "cluster/control/view.h"

namespace gossamer::cluster {

using membership::Change;
using membership::ToMember;

void ViewHistory::add(const Change& change) {
  changes_.push_back(change);
  if (changes_.size() > kMost) changes_.pop_front();
}

std::vector<Change> ViewHistory::since(Epoch epoch) const {
  if (epoch.value == 0) return {};
  const auto first =
      std::ranges::find_if(changes_, [epoch](const Change& change) { return change.from() == epoch.value; });
  return {first, changes_.end()};
}

NextView::NextView(const Leadership& leadership)
    : options_(leadership.options), run_(leadership.run), outbox_(leadership.outbox) {}

void NextView::take_up() {
  if (run_.fenced != run_.view.fenced()) fenced_since_ = run_.fenced.runs();
}

void NextView::gone(net::PeerId peer) {
  if (run_.fenced.fence(peer.incarnation)) {
    outbox_.put(put_fenced(run_.fenced));
    fenced_since_.push_back({peer.incarnation, peer.incarnation});
  }
  outbox_.put(remove_member(peer.incarnation));
}

void NextView::reserve_epoch() {
  if (epoch_reserved_) return;
  epoch_reserved_ = true;
  outbox_.put(put_epoch(Epoch(run_.view.epoch().value + 1), run_.view.fenced(), run_.view.expelled()));
}

Change NextView::difference(Joins joins) {
  Change change;
  change.set_from(run_.view.epoch().value);
  change.set_epoch(run_.view.epoch().value + 1);
  for (auto& [node, member] : run_.members) {
    const membership::State before = member.record.state();
    const bool wants = member.wants_to_serve && !member.wants_to_drain && before == membership::JOINING;
    if (wants && joins == Joins::kMayServe) member.record.set_state(membership::SERVING);
    if (member.wants_to_drain && before != membership::JOINING) member.record.set_state(membership::DRAINING);
    if (member.record.state() == before) continue;
    if (options_.guarded(Defect::kForgottenMember)) outbox_.put(put_member(member.record));
    *change.add_members() = member.record;
    outbox_.note(member.record.state() == membership::SERVING ? "serving" : "draining",
                 peer_of(member.record), member.record.name());
  }
  add_fenced(std::exchange(fenced_since_, {}), change);
  add_expelled(run_.expelled, run_.view, change);
  return change;
}

Change NextView::begin(Joins joins) {
  reserve_epoch();
  epoch_reserved_ = false;
  Change change = difference(joins);
  const Result<void> applied = run_.view.apply(change);
  CHECK(applied.ok(), applied.error().message());
  outbox_.view_changed(change);
  outbox_.put(put_epoch(run_.view.epoch(), run_.view.fenced(), run_.view.expelled()));
  return change;
}

ViewTeller::ViewTeller(const Leadership& leadership)
    : options_(leadership.options), run_(leadership.run), outbox_(leadership.outbox) {}

void ViewTeller::changed(const Change& change, Rest rest) {
  history_.add(change);
  for (auto& [node, member] : run_.members) {
    if (member.told) tell_view(member, *member.told, rest);  // others will say Here
  }
}

void ViewTeller::tell_view(LedMember& member, Epoch has, Rest rest) {
  std::vector<Change> changes = history_.since(has);
  if (changes.size() > 1) reach(ControlProbe::kSeveralDifferences);
  if (changes.empty()) {
    // A member with epoch 0 gets the view of epoch 0, too. It must learn that there is nobody to reach yet.
    if (has.value != 0) reach(ControlProbe::kWholeView);
    Change& whole = changes.emplace_back(run_.view.whole());
    if (run_.installed.epoch() != 0 && (rest != Rest::kNo || placement_is_for(member)))
      *whole.mutable_installed() = install_message(run_);
  }
  for (Change& change : changes) {
    // Members come to rest only for the last change.
    const bool rests = rest != Rest::kNo && &change == &changes.back();
    change.set_freeze(rests);
    change.set_can_wait(rests && rest == Rest::kAfterStep);
    ToMember message;
    *message.mutable_change() = std::move(change);
    outbox_.tell(member, std::move(message));
  }
  member.told = run_.view.epoch();
}

bool ViewTeller::placement_is_for(const LedMember& member) const {
  if (options_.view_change == ViewChange::kAnnounced) return true;
  const auto in_view = run_.view.members().find(NodeId(member.record.node()));
  const bool of_former_life =
      in_view != run_.view.members().end() && peer_of(in_view->second) != peer_of(member.record);
  const bool is_for = !of_former_life && run_.installed.epoch() == run_.view.epoch().value;
  if (!is_for) reach(ControlProbe::kFormerPlacement);
  return is_for;
}

void ViewTeller::placed() {
  for (const auto& [node, member] : run_.members) {
    if (member.told) tell_placement(member);
  }
}

void ViewTeller::tell_placement(const LedMember& member) {
  ToMember message;
  *message.mutable_install() = install_message(run_);
  outbox_.tell(member, std::move(message));
}

void ViewTeller::tell_placement_again(const LedMember& member, const membership::Here& here) {
  const bool lacks_it = here.epoch() != 0 && here.installed() < run_.installed.epoch();
  if (!lacks_it || !placement_is_for(member)) return;
  reach(ControlProbe::kInstallAgain);
  tell_placement(member);
}

void ViewTeller::tell_stop(const LedMember& member, const membership::StopAsked& asked) {
  ToMember message;
  *message.mutable_stop() = asked;
  outbox_.tell(member, std::move(message));
}

void ViewTeller::release(const LedMember& member, std::string_view why) {
  reach(ControlProbe::kReleased);
  ToMember message;
  message.mutable_released()->set_reason(std::string(why));
  outbox_.tell(member, std::move(message));
}

}  // namespace gossamer::cluster
