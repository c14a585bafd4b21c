// SPDX-License-Identifier: Apache-2.0
//
// Changes, the table of its phases. All changes of the phase go through advance().
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "cluster/control/changes.h"

namespace gossamer::cluster {

namespace {

std::string_view words_of(ChangesEvent event) {
  using Event = ChangesEvent;
  switch (event) {
    case Event::kTakenUp: return "the store has an epoch that was begun and not installed";
    case Event::kWanted:
      return "a member says `Ready` or `Drain`, or has lost messages of another; a node outside is expelled; "
             "the run stands still";
    case Event::kWantedInOrder:
      return "a member says `Ready` or `Drain`, rests by wish, or has left when it had drained; a node "
             "outside is "
             "expelled; another placement pays; and the change can wait";
    case Event::kHurried: return "a change that can wait has no time left";
    case Event::kWaited: return "a change was wanted while members came to rest";
    case Event::kSilent: return "a member of the view seems dead";
    case Event::kMissed: return "all but silent members rest, and lack what these hold";
    case Event::kCleared: return "members of the view are fenced, and all others rest";
    case Event::kFenced: return "a member of the view is fenced";
    case Event::kDiedAtEnd: return "a member of the view is fenced that has not left";
    case Event::kJoiningFenced: return "joining members alone are fenced";
    case Event::kRebalanceDue: return "a rebalancing is due";
    case Event::kPays: return "another placement pays";
    case Event::kReport: return "a member says `Frozen` for the epoch of the view";
    case Event::kAllRest: return "all members rest, or need not";
    case Event::kTooLittle: return "too few members serve, or they have too little memory";
    case Event::kUnchanged: return "members need not rest, and the placement stays";
    case Event::kPlaced: return "every thing has a holder";
    case Event::kHere: return "a member says `Here`";
    case Event::kIntroduced: return "a member that said `Here` was introduced to the others";
    case Event::kNobodyReady:
      return "for 10 s nobody that joins was ready to take over what draining members hold";
    case Event::kStop: return "the run is told to end, or its engine has failed";
    case Event::kStopUnheard: return "the run is told to end, and a member of the view is not heard";
    case Event::kStopFound: return "the store says that the run ends";
    case Event::kStopDue: return "the change ended before a run that is to end, or lasts for eleven minutes";
  }
  return "";
}

}  // namespace

const char* phase_name(CoordinatorPhase phase) {
  switch (phase) {
    case CoordinatorPhase::kSettled: return "settled";
    case CoordinatorPhase::kFreezing: return "changing";
    case CoordinatorPhase::kShort: return "short";
    case CoordinatorPhase::kWaiting: return "waiting";
    case CoordinatorPhase::kStopping: return "stopping";
  }
  return "";
}

struct Changes::Table {
  static constexpr Action kBeginChange{&Changes::begin_change, "persist the next epoch, send `Change`"};
  static constexpr Action kBeginAnew{&Changes::begin_anew,
                                     "drop the reports, persist the next epoch, send `Change`"};
  static constexpr Action kGoOnWithoutFenced{
      &Changes::go_on_without_fenced,
      "persist the next epoch, send `Change` without `freeze`; place all things"};
  static constexpr Action kBeginInOrder{&Changes::begin_in_order,
                                        "persist the next epoch, send `Change` with `can_wait`"};
  static constexpr Action kLetWait{&Changes::let_wait, "note that it waits"};
  static constexpr Action kKeepReport{&Changes::keep_report, "keep the report"};
  static constexpr Action kDecide{&Changes::decide, "place all things"};
  static constexpr Action kFallShort{&Changes::fall_short,
                                     "send `Released` to draining members, if none joins or 10 s are over"};
  static constexpr Action kWaitForSilent{&Changes::wait_for_silent, "note which members it waits for"};
  static constexpr Action kGoOn{&Changes::go_on, "none"};
  static constexpr Action kInstall{&Changes::install,
                                   "let the engine decide, persist placement and decision, send `Install`"};
  static constexpr Action kReleaseTheLeaving{
      &Changes::release_the_leaving, "send `Released` to draining members, if none joins or 10 s are over"};
  static constexpr Action kReleaseTheLast{
      &Changes::release_the_leaving, "send `Released`, if all members drain and none joins or 10 s are over"};
  static constexpr Action kRebalance{&Changes::rebalance, "look for a better placement"};
  static constexpr Action kInstallAgain{
      &Changes::install_again, "send the last `Install`, if it is for this life and the member lacks it"};
  static constexpr Action kSayStop{&Changes::say_stop, "send `StopAsked` to the member"};
  static constexpr Action kEndOnceInstalled{&Changes::end_once_installed,
                                            "persist the end, note that it waits"};
  static constexpr Action kEndAfterChange{&Changes::end_after_change,
                                          "persist the end and the next epoch, send `Change`"};
  static constexpr Action kEndRun{&Changes::end_run, "persist the end, send `StopAsked`"};
  static constexpr Action kBeginStop{&Changes::begin_stop, "send `StopAsked`"};

  static constexpr Phase kSettled = Phase::kSettled;
  static constexpr Phase kFreezing = Phase::kFreezing;
  static constexpr Phase kShort = Phase::kShort;
  static constexpr Phase kWaiting = Phase::kWaiting;
  static constexpr Phase kStopping = Phase::kStopping;

  static constexpr std::array<Transition, 49> kRows{{
      {kSettled, Event::kTakenUp, kFreezing, kBeginChange, "members may know of that epoch"},
      {kSettled, Event::kWanted, kFreezing, kBeginChange, "nothing else is under way"},
      {kSettled, Event::kWantedInOrder, kFreezing, kBeginInOrder, "the step that is open ends first"},
      {kSettled, Event::kWaited, kFreezing, kBeginChange, "its turn has come"},
      {kSettled, Event::kSilent, kFreezing, kBeginChange,
       "at rest others say whether they can go on without it"},
      {kSettled, Event::kFenced, kFreezing, kBeginChange, "its things need another holder"},
      {kSettled, Event::kRebalanceDue, kSettled, kRebalance, "members become faster and slower"},
      {kSettled, Event::kPays, kFreezing, kBeginChange, "things move while all members rest"},
      {kSettled, Event::kHere, kSettled, kInstallAgain, "a link may have lost it"},
      {kSettled, Event::kJoiningFenced, kSettled, kReleaseTheLast,
       "draining members wait for nobody any more"},
      {kSettled, Event::kIntroduced, kSettled, kReleaseTheLast, "a link may have lost it"},
      {kSettled, Event::kNobodyReady, kSettled, kReleaseTheLast, "a member that joins may never be ready"},
      {kSettled, Event::kStop, kStopping, kEndRun, "the next coordinator must know"},
      {kSettled, Event::kStopUnheard, kSettled, kEndOnceInstalled,
       "it is fenced or heard within seconds; if it is dead, others have to take its things over first"},
      {kSettled, Event::kStopDue, kStopping, kEndRun, "all go on from the same step"},
      {kSettled, Event::kStopFound, kStopping, kBeginStop, "the coordinator before was told"},
      {kFreezing, Event::kWanted, kFreezing, kLetWait, "members that come or go in order wait for `Install`"},
      {kFreezing, Event::kHurried, kFreezing, kBeginAnew, "the step that is open may never end"},
      {kFreezing, Event::kFenced, kFreezing, kBeginAnew, "no member goes on before the last death is known"},
      {kFreezing, Event::kCleared, kFreezing, kGoOnWithoutFenced, "what the others have reported stays true"},
      {kFreezing, Event::kReport, kFreezing, kKeepReport, "the decision rests on all reports"},
      {kFreezing, Event::kAllRest, kFreezing, kDecide, "nothing is under way between members"},
      {kFreezing, Event::kTooLittle, kShort, kFallShort, "members rest until another one comes"},
      {kFreezing, Event::kMissed, kWaiting, kWaitForSilent, "a fence would lose what they hold"},
      {kFreezing, Event::kUnchanged, kSettled, kGoOn, "`Change` has told members everything"},
      {kFreezing, Event::kPlaced, kSettled, kInstall, "all members go on from the same step"},
      {kFreezing, Event::kStop, kFreezing, kEndOnceInstalled, "members at rest may be a step apart"},
      {kFreezing, Event::kStopDue, kStopping, kEndRun, "a change may never end"},
      {kShort, Event::kWanted, kFreezing, kBeginChange, "the members may suffice now"},
      {kShort, Event::kWaited, kFreezing, kBeginChange, "the members may suffice now"},
      {kShort, Event::kFenced, kFreezing, kBeginChange, "the view may not list it"},
      {kShort, Event::kJoiningFenced, kShort, kReleaseTheLeaving,
       "draining members wait for nobody any more"},
      {kShort, Event::kIntroduced, kShort, kReleaseTheLeaving, "a link may have lost it"},
      {kShort, Event::kNobodyReady, kShort, kReleaseTheLeaving, "a member that joins may never be ready"},
      {kShort, Event::kStop, kFreezing, kEndAfterChange, "members at rest may be a step apart"},
      {kShort, Event::kStopDue, kStopping, kEndRun, "there is no more to be had"},
      {kShort, Event::kMissed, kWaiting, kWaitForSilent, "a fence would lose what they hold"},
      {kWaiting, Event::kWanted, kFreezing, kBeginChange, "members may come meanwhile"},
      {kWaiting, Event::kWaited, kFreezing, kBeginChange, "members may come meanwhile"},
      {kWaiting, Event::kFenced, kFreezing, kBeginAnew, "no member goes on before the last death is known"},
      {kWaiting, Event::kCleared, kFreezing, kGoOnWithoutFenced, "what the others have reported stays true"},
      {kWaiting, Event::kReport, kWaiting, kKeepReport, "a silent member is back"},
      {kWaiting, Event::kAllRest, kFreezing, kDecide, "all silent members are back, reported before or not"},
      {kWaiting, Event::kStop, kWaiting, kEndOnceInstalled, "members at rest may be a step apart"},
      {kWaiting, Event::kStopDue, kStopping, kEndRun, "a change may never end"},
      {kStopping, Event::kWanted, kStopping, kLetWait, "the view changes no more for it"},
      {kStopping, Event::kDiedAtEnd, kFreezing, kEndAfterChange,
       "the others take its things over, and save one more step with them"},
      {kStopping, Event::kHere, kStopping, kInstallAgain, "a link may have lost it"},
      {kStopping, Event::kIntroduced, kStopping, kSayStop, "a link may have lost it"},
  }};

  // Whether each event has one row at most in each phase.
  static constexpr bool is_clear() {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kRows[i].from == kRows[j].from && kRows[i].event == kRows[j].event) return false;
      }
    }
    return true;
  }
};

const Changes::Transition* Changes::row(Event event) const {
  static_assert(Table::is_clear());
  const auto found = std::ranges::find_if(
      Table::kRows, [&](const Transition& one) { return one.from == phase_ && one.event == event; });
  return found == Table::kRows.end() ? nullptr : &*found;
}

void Changes::advance(Event event, const Cause& cause) {
  const Transition* const found = row(event);
  if (found == nullptr) return;  // means nothing in this phase
  phase_ = found->to;
  (this->*found->action.run)(cause);
}

std::string Changes::transitions() {
  std::string text = "| from | event | to | action | why |\n|---|---|---|---|---|\n";
  for (const Transition& one : Table::kRows) {
    text += fmt::format("| `{}` | {} | `{}` | {} | {} |\n", phase_name(one.from), words_of(one.event),
                        phase_name(one.to), one.action.words, one.why);
  }
  return text;
}

}  // namespace gossamer::cluster
