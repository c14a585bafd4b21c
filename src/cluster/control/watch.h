// SPDX-License-Identifier: Apache-2.0
//
// Watch: the part of a coordinator that knows which members live. It hears their signs of life, weighs what
// they say of each other, and names the members that are to be fenced. The coordinator fences them.
//
// Thread rule: one owner, the coordinator's.
#pragma once

#include <gossamer/membership.pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "cluster/control/coordinator_outbox.h"
#include "cluster/control/leadership.h"
#include "cluster/membership/accusations.h"
#include "cluster/membership/disputes.h"
#include "cluster/membership/doubts.h"
#include "cluster/membership/silent_times.h"
#include "cluster/membership/stall_clock.h"
#include "net/link/links.h"

namespace gossamer::cluster {

// How long a silent member may be spared.
struct Patience {
  Duration elsewhere;  // one on another machine
  Duration here;       // one on the coordinator's own, where no network can be at fault
};

class Watch {
 public:
  static constexpr Duration kHereTime{10'000'000'000};      // from Begin, or a takeover, to Here
  static constexpr Duration kMissingFor{1'000'000'000};     // a living member finds a new coordinator sooner
  static constexpr Duration kTogether{50'000'000};          // deaths so close are one change of the view
  static constexpr Duration kAskAfter{1'000'000'000};       // of a silence that others are asked about
  static constexpr Duration kAnswersWithin{500'000'000};    // a question, and the next beats
  static constexpr Duration kLongestStep{600'000'000'000};  // nobody waits longer for three steps
  static constexpr Duration kLookAgain{1'000'000'000};      // at silent members: facts change that spare them
  static constexpr Duration kHangsUpWithin{1'000'000'000};  // a cut network closes nothing for longer
  // Why members are lost.
  static constexpr std::string_view kSilent = "it is silent";
  static constexpr std::string_view kNotInTime = "it did not come in time";

  // `links` outlives this part. `silent`: how long members were silent before this lead.
  Watch(const Leadership& leadership, net::Links& links, SilentTimes::Rows silent, Instant now);

  // The member has begun, or was found in the store. It has kHereTime to come.
  void expect(LedMember& member, Instant now);
  // The member said Here.
  void come(LedMember& member, Instant now);
  // The member said something, or its link came up.
  void heard(LedMember& member, Instant now);
  // A connection of the member closed.
  void closed(LedMember& member, Instant now);
  // Another life of the member's node begins, and is about to fence this one.
  void begins_again(const LedMember& member, Instant now);
  // Sets the member's wake-up by what is known of it. Called once an event of the member is dealt with.
  void schedule(LedMember& member);
  // The member is about to be removed from the run.
  void forget(const LedMember& member, Instant now);

  // What the member `by` says of others.
  struct Word {
    std::set<NodeId> unreachable = {};  // now
    std::set<NodeId> hears = {};        // of those that the coordinator has asked about
    std::set<NodeId> quiet = {};        // likewise
  };
  void says(NodeId by, const Word& word, Instant now);
  // `by` says that `of` has broken a rule. True: it says so for the first time.
  bool accuses(NodeId by, NodeId of, const std::string& rule) { return accusations_.says(by, of, rule); }
  // `by` has lost its link with `of` in the view of this epoch, and says that `of` has broken rules so many
  // times. It counts between members that rest when the view changes.
  void loses(NodeId by, NodeId of, std::uint64_t times, Epoch epoch, Instant now);
  // Whether two that are heard break off their links again and again, so that one of them is unreachable().
  [[nodiscard]] bool quarrel_is_ripe(Instant now) const;
  // A member that has to go for a rule that it has broken, if there is one.
  [[nodiscard]] std::optional<Accusations::Verdict> guilty() const;
  // Members that did not come after a takeover, and that nobody reaches.
  [[nodiscard]] std::vector<NodeId> missing(Instant now);
  // How far the members that work together have come. Each step needs all of them, so words that one does not
  // reach another count anew from each step, and from each Install.
  struct Work {
    Epoch installed;
    std::optional<StepNumber> committed = {};  // none: there are no common steps
    bool operator==(const Work&) const = default;
  };
  void works(const Work& work, Instant now);
  // A member of the view has done so much in its life.
  void beats(NodeId node, const StallClock::Done& done, Instant now) { stall_clock_.beat(node, done, now); }
  // Whether the run stands still though all are heard: an engine may hang. True: all are asked to rest.
  // `works`: a step is expected.
  [[nodiscard]] bool stands_still(bool works, const std::function<bool()>& all_heard, Instant now);
  // Members that have to go because they and others do not reach each other, and no step was taken for as
  // long as three of them last. They are among the run's departures from now on.
  [[nodiscard]] std::vector<NodeId> unreachable(Instant now);
  // Whether the run loses nothing if these members of the view are fenced (Changes::can_lose).
  using CanLose = std::function<bool(const std::set<NodeId>& silent)>;
  // Members that have not come in time, or are silent, and are not spared: by doubts.h, or because the run
  // would lose what they hold. After a silence as long as the patience none is.
  [[nodiscard]] std::vector<Fencing> due(const Patience& patience, const CanLose& can_lose, Instant now);
  // Another member has come to rest, or is fenced, so the run may be able to lose silent ones.
  void look_again(Instant now);
  // Whether the member is silent and alone, and others hear it: only the path to this process is broken.
  [[nodiscard]] bool misses_alone(NodeId node, Instant now) const;
  // Since when no member elsewhere is heard, though there are some; nothing: one is, or there is none.
  [[nodiscard]] std::optional<Instant> alone_since(Instant now) const;
  // The members elsewhere that serve.
  [[nodiscard]] Hearing hears_elsewhere(Instant now) const;
  // Whether others hear a member that this process does not: steps go on, and a change would stop them.
  [[nodiscard]] bool misses_living(Instant now) const;
  [[nodiscard]] std::optional<Instant> next_wakeup() const;
  // Which silent members the run waits for, for people; "": for none.
  enum class Wait { kForTheEnd, kForTheirReturn };
  [[nodiscard]] std::string waits_for(Wait wait, Instant now) const;

 private:
  void wake(LedMember& member, std::optional<Instant> when);
  void wake_spared(Instant now);
  [[nodiscard]] bool is_elsewhere(const LedMember& member) const {
    return options_.machine.empty() || member.record.machine() != options_.machine;
  }
  [[nodiscard]] Doubts::Fleet fleet(Instant now) const;
  [[nodiscard]] bool is_overdue(LedMember& member, Instant now);
  [[nodiscard]] std::optional<Instant> answers_until(NodeId node, const Doubts::Fleet& fleet,
                                                     Instant now) const;
  [[nodiscard]] Instant here_until(const LedMember& member) const;
  [[nodiscard]] Instant last_due(Instant with, Instant now) const;
  // What the member's patience is in this lead, and the rows of its silences.
  [[nodiscard]] Duration patience_of(const LedMember& member, const Patience& all) const;
  void count_silences(Instant now);
  void ends_silence(const LedMember& member);
  // Removes from those that are due the ones that the run cannot lose yet.
  void keep_needed(std::vector<Fencing>& due, const Patience& patience, const CanLose& can_lose, Instant now);
  [[nodiscard]] bool may_be_needed(NodeId node, const Patience& patience, Instant now) const;
  // Until when the silent member is spared; nothing: it is not.
  [[nodiscard]] std::optional<Instant> spares(LedMember& member, const Doubts::Fleet& fleet,
                                              const Patience& patience, Instant now);
  // Asks those that are heard about those that are silent.
  void ask_about(const Doubts::Fleet& fleet, Instant now);
  [[nodiscard]] std::set<NodeId> doubtful(const Doubts::Fleet& fleet, Instant now);
  void spare(LedMember& member, LedMember::Spared how);
  // `first`: when the first of the dead died.
  [[nodiscard]] std::vector<Fencing> fencings(std::vector<NodeId> late, std::vector<NodeId> dead,
                                              Instant first, Instant now);
  void reach(ControlProbe probe) const { reached(options_.probes, probe); }

  const CoordinatorOptions& options_;
  LedRun& run_;
  CoordinatorOutbox& outbox_;
  net::Links& links_;
  Disputes disputes_;
  Work work_;
  StallClock stall_clock_;
  Doubts doubts_;
  Accusations accusations_;
  SilentTimes silent_times_;
  bool a_silence_ended_ = false;  // and is not written yet
  Instant next_count_;
  std::set<std::pair<Instant, NodeId>> wakes_;
  const Instant began_;
  Instant last_came_;                      // a member that served before this lead
  std::map<NodeId, Instant> asked_about_;  // since when
  std::set<NodeId> asked_;                 // members that have the question
  bool together_ = false;                  // several fell silent together
  std::optional<Instant> ask_at_;          // when to look whether others are silent
  bool cut_off_ = false;                   // members are spared because nobody is heard that could take over
};

}  // namespace gossamer::cluster
