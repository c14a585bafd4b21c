// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/view_teller.h"

#include <algorithm>
#include <utility>

#include "cluster/control/run_placement.h"

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
    const bool for_it = rest == Rest::kYes || placement_is_for(member);
    if (run_.installed.epoch() != 0 && for_it) *whole.mutable_installed() = install_message(run_);
  }
  for (Change& change : changes) {
    // Members come to rest only for the last change.
    change.set_freeze(rest == Rest::kYes && &change == &changes.back());
    ToMember message;
    *message.mutable_change() = std::move(change);
    outbox_.tell(member, std::move(message));
  }
  member.told = run_.view.epoch();
}

bool ViewTeller::placement_is_for(const LedMember& member) const {
  const NodeId node(member.record.node());
  const bool given =
      std::ranges::any_of(run_.holdings, [node](const auto& one) { return one.second == node; });
  if (!given || options_.view_change == ViewChange::kAnnounced) return true;
  const bool served =
      run_.view.find(peer_of(member.record)) != nullptr && run_.installed.epoch() == run_.view.epoch().value;
  if (!served) reach(ControlProbe::kFormerPlacement);
  return served;
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

void ViewTeller::release(const LedMember& member) {
  reach(ControlProbe::kReleased);
  ToMember message;
  message.mutable_released()->set_reason("nobody can take its part over");
  outbox_.tell(member, std::move(message));
}

}  // namespace gossamer::cluster
