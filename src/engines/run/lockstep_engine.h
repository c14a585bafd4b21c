// SPDX-License-Identifier: Apache-2.0
//
// LockstepEngine: the base of engines whose members hold things and take each step together. A step is one
// sum of f32 numbers over all members that hold things (cluster/collective). When the view changes they come
// to rest, report, and go on where the workload decides.
//
// If the engine saves, a run that is to end goes so (docs/protocols/checkpoint.md, "Stopping"):
//
//   a member is told     the sum of its next step counts the members that wish to halt
//   that step is done    all members see the same count, and save what they hold. Those that were told halt
//   its save lasts       a member says so in an exchange. It leaves when all have, or after 10 s and 2 steps
//   it was not told      it says so as soon as it has saved, and stays
//
// If a member dies meanwhile, the view changes once more, and the others halt in that one. If an exchange
// fails otherwise, or takes too long, the member saves what it holds and leaves alone.
//
// While nobody leads, a member that is told to leave wishes to halt in the same way. The others save, say so,
// and begin the next step, which they cannot end without it. They stay, and go on in the next view. Members
// that are told at rest first end the step under way, if all have given what it needs. So they save before
// the same step.
//
// A sum does not tell which member wished. So members that are not told save for it once in a view alone.
//
// Computing is done on the loop thread, so a step may take some 100 ms at most. Thread rule: the loop thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "base/time.h"
#include "cluster/collective/collectives.h"
#include "engines/run/fleet_recovery.h"
#include "engines/run/lockstep_workload.h"
#include "engines/run/member_engine.h"
#include "engines/run/member_step.h"
#include "engines/run/recent_steps.h"
#include "engines/run/recovery_watch.h"

namespace gossamer::engine {

class LockstepEngine : public MemberEngine {
 public:
  void tick(Instant now) final;
  [[nodiscard]] std::optional<Instant> next_wakeup() const final;
  [[nodiscard]] std::optional<cluster::Awaited> awaits() const final;
  // The first step that this life has not applied; nothing between two lives.
  [[nodiscard]] std::optional<StepNumber> step() const;

 protected:
  // `channel`: of its exchanges, another for each engine.
  LockstepEngine(cluster::MemberProcess& process, std::uint32_t channel)
      : MemberEngine(process), channel_(channel) {}

  struct Steps {
    std::optional<std::uint64_t> all = {};  // of the run; nothing: there is no end
    std::size_t elements = 1;               // that are summed in a step, >= 1
    Duration pause = {};                    // from the end of a step to the next
    Duration least = {};                    // from the beginning of a step to the next
    bool saves = false;                     // save() keeps what is held; false: a stopped run is lost
  };
  // Makes what the configuration describes, and forgets what an earlier life held.
  [[nodiscard]] virtual Result<Steps> prepare(const std::string& configuration) = 0;
  // The things that this life holds.
  [[nodiscard]] virtual std::vector<std::uint64_t> things() const = 0;
  // What the workload is told when the member has come to rest. `next`: the step that comes next.
  [[nodiscard]] virtual std::string report(StepNumber next) const { return step_text(next); }
  struct GoOn {
    StepNumber step;                   // that comes next
    std::uint64_t steps_replayed = 0;  // that were computed anew for it
  };
  // Takes on the things that the view gives to this member. `next`: the step that came next at rest.
  [[nodiscard]] virtual Result<GoOn> take_on(const membership::Install& installed, StepNumber next) = 0;
  // Adds this member's numbers to the zeros in `input`.
  virtual void form(StepNumber step, std::span<float> input, Instant now) = 0;
  // Applies a step. Returns this member's part of the loss; nothing: steps have no loss.
  [[nodiscard]] virtual Result<std::optional<double>> apply(StepNumber step, std::span<const float> sum) = 0;
  // The step was applied. `took`: since it was begun.
  virtual void applied(const MemberStep& step, Duration took) = 0;
  // Called after the first step that follows a recovery.
  virtual void recovered(const FleetRecovery&) {}
  // Called when no step is left, and again in each view after that.
  [[nodiscard]] virtual Result<void> finish() { return {}; }
  // The run ends before step `next`: keeps what this member holds. Handles its failures itself.
  virtual void save(StepNumber) {}
  // Whether what save() and finish() have kept is where it outlives this node. Asked now and then.
  [[nodiscard]] virtual bool save_lasts() const { return true; }

  // Bytes of exchanges, over all lives, as links count them.
  [[nodiscard]] std::uint64_t exchanged_bytes() const { return exchanged_bytes_; }
  // Between prepare() and the end of a life: the epoch that it went on with.
  [[nodiscard]] Epoch installed() const { return life_ ? life_->installed : Epoch(); }

 private:
  // State that ends with an incarnation.
  struct Life {
    Life(const Steps& its_steps, const cluster::Collectives::Options& options)
        : steps(its_steps), exchanges(options) {}
    const Steps steps;
    cluster::Collectives exchanges;
    Epoch installed;
    StepNumber step;
    std::map<std::uint64_t, NodeId> holders;  // by thing, as installed
    std::size_t rank = 0;                     // among members that hold things
    std::size_t members = 0;
    bool working = false;  // it takes part in the exchanges of `installed`
    std::optional<Instant> next_step;
    Instant step_begun;
    Duration took;  // the last step
    RecoveryWatch watch;
    RecentSteps recent;
    // The end.
    std::optional<std::string> stop;        // why the run is to end, once this life was told
    bool wished = false;                    // to halt, in the step under way
    bool others_wish = false;               // to halt, in this view
    std::optional<StepNumber> saved;        // the step that came next when it saved what it holds
    bool halting = false;                   // was told to end, has saved, and takes no further step
    bool alone = false;                     // leaves as soon as its save lasts
    std::optional<StepNumber> told_halted;  // the step that came next when it told that it has saved
    bool others_halted = false;             // all others have told it so, and no step followed
    bool waits = false;                     // its save lasts, and it leaves once all have halted
    std::optional<Slices> late = {};        // the sum of the step that was under way when it came to rest
    std::optional<Instant> look_again;      // when to ask again whether the save lasts, or to wait no longer
  };

  void begin(const cluster::LifeBegun& event, Instant now) final;
  void end() final { life_.reset(); }
  void freeze(Instant now) final;
  void install(Instant now) final;
  void lost(net::PeerId peer, Instant now) final;
  void arrived(const net::Arrived& event, Instant now) final;
  void stop(const std::string& reason, Instant now) final;
  void watch_change(std::uint64_t steps_replayed, Instant now);
  void begin_exchanges(Instant now);
  void begin_step(Instant now);
  void carry_out(cluster::CollectiveEvents events, Instant now);
  void completed(cluster::Completed what, Instant now);
  // Returns how many members wish to halt; nothing: the engine has failed.
  std::optional<float> take_step(const Slices& sum, Instant now);
  void step_done(const Slices& sum, Instant now);
  void tell(std::optional<double> loss, Instant now);
  void no_step_left(Instant now);
  void exchange(cluster::OperationId id, const cluster::Operation& operation, Slice given, Instant now);
  [[nodiscard]] bool view_stays() const;
  void halt_no_more();
  void ask_to_halt(Instant now);
  void save_once();
  void halt(Instant now);
  void halt_alone(Instant now);
  void go_on_halting(Instant now);
  void tell_halted(Instant now);
  void leave(Instant now);
  [[nodiscard]] bool over() const { return life_->steps.all && life_->step.value >= *life_->steps.all; }
  // The numbers that are summed in a step: the engine's, and how many members wish to halt.
  [[nodiscard]] std::size_t summed() const { return life_->steps.elements + (life_->steps.saves ? 1 : 0); }

  const std::uint32_t channel_;
  std::uint64_t exchanged_bytes_ = 0;
  std::optional<Life> life_;
};

}  // namespace gossamer::engine
