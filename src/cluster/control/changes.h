// SPDX-License-Identifier: Apache-2.0
//
// Changes: the part of a coordinator that changes the view: epochs, coming to rest, placement, and the end of
// the run. Its phases are one table of transitions, in changes_table.cc. An event that has no row in a phase
// is ignored there. The page docs/protocols/membership.md shows the same table.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "cluster/control/books.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/control/run_placement.h"
#include "cluster/control/view_teller.h"
#include "cluster/control/workload.h"
#include "cluster/membership/fenced_incarnations.h"
#include "cluster/membership/open_steps.h"
#include "cluster/membership/release_clock.h"
#include "cluster/membership/rest_clock.h"
#include "cluster/membership/run_end.h"
#include "cluster/placement/placement.h"

namespace gossamer::cluster {

enum class CoordinatorPhase {
  kSettled,   // the view is installed, or nobody serves yet
  kFreezing,  // members come to rest
  kShort,     // they rest, but there are too few of them or too little memory
  kWaiting,   // they rest, and lack what silent ones hold
  kStopping,  // everybody is asked to leave
};
// The word of status, metrics and docs/protocols/membership.md.
[[nodiscard]] const char* phase_name(CoordinatorPhase phase);

// What happens to the phases; changes_table.cc has it in words.
enum class ChangesEvent {
  kTakenUp,
  kWanted,
  kWantedInOrder,
  kHurried,
  kWaited,
  kSilent,
  kMissed,
  kCleared,
  kFenced,
  kDiedAtEnd,
  kJoiningFenced,
  kRebalanceDue,
  kPays,
  kReport,
  kAllRest,
  kTooLittle,
  kUnchanged,
  kPlaced,
  kHere,
  kIntroduced,
  kNobodyReady,
  kStop,
  kStopFound,
  kStopDue,
  kStopUnheard,
};

// What comes with an event.
struct ChangesCause {
  Instant now;
  const LedMember* member = nullptr;             // kHere, kIntroduced, kReport: the member that said it
  const membership::Here* here = nullptr;        // kHere
  const membership::Frozen* report = nullptr;    // kReport
  const placement::Placement* placed = nullptr;  // kPlaced
  std::string text = {};                         // kTooLittle, kMissed: what is missing; kStop..: why
};

class Changes {
 public:
  using Phase = CoordinatorPhase;

  static constexpr Duration kRebalanceEvery{10'000'000'000};
  static constexpr Duration kSettlesIn{30'000'000'000};  // time for new measurements after a change

  // `books` outlives this part.
  Changes(const Leadership& leadership, Books& books);
  // Goes on where the coordinator before this one ended. Called once, when the members are in the run.
  void take_up(const std::optional<membership::Stopping>& stopping, Instant now);

  // What members say. here() comes before the member is introduced to the others, introduced() after it.
  void here(LedMember& member, const membership::Here& said, Instant now);
  void introduced(const LedMember& member, Instant now);
  void link_ended(LedMember& member) { member.told.reset(); }  // messages may be lost
  void ready(LedMember& member, Instant now);
  void drain(LedMember& member, Instant now);
  // A beat, which may tell of lost links.
  void lost_links(LedMember& member, const membership::Beat& said, Instant now);
  // Whether this report is waited for; if so, rests() takes it.
  [[nodiscard]] bool awaits(net::PeerId peer, const membership::Frozen& said) const;
  void rests(const LedMember& member, const membership::Frozen& said, Instant now);
  void say_placement(const LedMember& member) { teller_.tell_placement(member); }

  // Members are fenced together: about_to_fence() first, gone() for each, and fenced() once.
  enum class Fenced { kInView, kLeft, kJoining };  // kInView: one of them serves or drains; kLeft: in order
  void about_to_fence(Fenced where, Instant now);
  void gone(net::PeerId peer);
  void fenced(Fenced where, Instant now);

  void want_change(Instant now);  // as soon as it may be, as something is wrong
  // For a member that comes or goes in order: where the engine can, the step that is open ends first.
  void want_in_order(Instant now);
  // Whether steps are expected.
  [[nodiscard]] bool steps_go_on() const { return phase_ == Phase::kSettled || open_steps_.waits(); }
  // Whether a fence may lose what the run has learnt, so that members are asked at rest.
  [[nodiscard]] bool may_lose() const;
  // Whether these members, which are silent, may be fenced: the others rest, and have all that the run has
  // learnt. If they do not rest, they are asked to, and the answer is no until they do.
  [[nodiscard]] bool can_lose(const std::set<NodeId>& silent, Instant now);
  void stop(const std::string& reason, Instant now);
  // Likewise, while a member of the view is not heard: it may be dead.
  void stop_unheard(const std::string& reason, Instant now);
  // Begins a rebalancing if one is due and pays, and all members are heard.
  void tick(const std::function<bool()>& all_heard, Instant now);
  // A beat, which tells whether the member knows the change, and whether its engine works.
  void beats(LedMember& member, const membership::Beat& said, Instant now);
  // Members that did not come to rest in time (rest_clock.h), if the others can go on.
  [[nodiscard]] std::set<NodeId> take_restless(const RestClock::Hearing& hearing, Instant now);
  // Members that are to be fenced by what was reported (due_at_rest()). The change waits for that.
  [[nodiscard]] Fencing take_fencing() { return std::exchange(fencing_, {}); }
  // Whether the time is over in which members leave; true once.
  [[nodiscard]] bool take_stop_end(Instant now) { return end_.take_over(now); }
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const std::string& shortage() const { return shortage_; }
  // Members of the view that have not said that they rest.
  [[nodiscard]] std::set<NodeId> awaited() const { return without_report(run_.view, reports_); }
  [[nodiscard]] const std::optional<Error>& failure() const { return end_.failure(); }
  [[nodiscard]] membership::StopAsked stop_asked() const;
  // Whether the run is told to end. Members may not know yet.
  [[nodiscard]] bool ending() const { return end_.is_set(); }
  // Whether members were told, by this coordinator or the one before. The view may change once more since.
  [[nodiscard]] bool told() const { return end_.told(); }

  // The table of transitions in Markdown, for people.
  [[nodiscard]] static std::string transitions();

 private:
  using Event = ChangesEvent;
  using Cause = ChangesCause;
  struct Action {
    void (Changes::*run)(const Cause& cause);
    std::string_view words;
  };
  // `event` leads from one phase to another; then the action runs.
  struct Transition {
    Phase from;
    Event event;
    Phase to;
    Action action;
    std::string_view why;
  };
  struct Table;  // all transitions

  [[nodiscard]] const Transition* row(Event event) const;
  void advance(Event event, const Cause& cause);

  // Actions.
  void begin_change(const Cause& cause);
  void begin_anew(const Cause& cause);
  void begin_in_order(const Cause& cause);
  void go_on_without_fenced(const Cause& cause);
  void let_wait(const Cause&) { reach(ControlProbe::kChangeWaits); }
  void keep_report(const Cause& cause);
  void wait_for_silent(const Cause& cause);
  void decide(const Cause& cause);
  void fall_short(const Cause& cause);
  void go_on(const Cause&) { reach(ControlProbe::kAnnouncedAlone); }  // they need nothing but the view
  void install(const Cause& cause);
  void release_the_leaving(const Cause& cause);
  void rebalance(const Cause& cause);
  void install_again(const Cause& cause);
  void say_stop(const Cause& cause);
  void end_once_installed(const Cause& cause);
  void end_after_change(const Cause& cause);
  void end_run(const Cause& cause);
  void begin_stop(const Cause& cause);
  void let_end_wait(const std::string& reason, Instant now);
  void fail(const Decision& decision, Instant now);

  void announce(ViewTeller::Rest rest);
  // Whether a member that learns of the view now is to come to rest.
  [[nodiscard]] bool members_rest() const { return phase_ == Phase::kFreezing || phase_ == Phase::kWaiting; }
  [[nodiscard]] ViewTeller::Rest rest() const {
    const bool rests = options_.view_change == ViewChange::kFrozen && members_rest();
    const auto when = open_steps_.waits() ? ViewTeller::Rest::kAfterStep : ViewTeller::Rest::kYes;
    return rests ? when : ViewTeller::Rest::kNo;
  }
  [[nodiscard]] bool may_wait(Instant now) const;
  void hurry(OpenSteps::Event why, Instant now);
  void place(Instant now);
  [[nodiscard]] bool all_rest() const { return awaited().empty(); }
  [[nodiscard]] AtRest at_rest(const std::map<NodeId, membership::Frozen>& reports);
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const CoordinatorOptions& options_;
  Workload& workload_;
  LedRun& run_;
  CoordinatorOutbox& outbox_;
  Books& books_;
  NextView next_;
  ViewTeller teller_;
  Phase phase_ = Phase::kSettled;
  std::string shortage_;
  RunEnd end_;
  enum class Wanted { kNo, kInOrder, kAtOnce };
  Wanted wanted_ = Wanted::kNo;
  std::map<NodeId, membership::Frozen> reports_;
  Fencing fencing_;
  std::optional<Instant> next_rebalance_;
  std::optional<Instant> next_look_;  // whether the first view still waits for others
  RestClock rest_clock_;
  OpenSteps open_steps_;
  ReleaseClock release_clock_;
};

}  // namespace gossamer::cluster
