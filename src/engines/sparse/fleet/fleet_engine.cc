// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_engine.h"

#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"

namespace gossamer::sparse_engine {

void FleetEngine::begin(const cluster::LifeBegun& event, Instant now) {
  life_.reset(new FleetLife{.exchanges = FleetExchanges(process(), event.self,
                                                        {.step_bytes = counters_.step_bytes,
                                                         .background_bytes = counters_.background_bytes}),
                            .reporter = FleetReporter(process(), clock_),
                            .questions = LeadQuestions(process())});
  configuration_ = event.configuration;
  // The computing thread may still have work of the life before. worked() comes back here.
  if (in_hand_.idle()) prepare(now);
}

// The configuration never changes in the life of a run, so a job that was made once stays.
void FleetEngine::prepare(Instant now) {
  if (job_ != nullptr) return prepared(now);
  want(FleetTask::kPreparing, [bench = life_->bench, make = make_job_, configuration = configuration_] {
    bench->job = make(configuration);
  });
}

void FleetEngine::prepared(Instant now) {
  life_->job = job_;
  life_->bench->learner = std::make_unique<FleetLearner>(*job_, clock_);
  life_->bench->vault = std::make_unique<Vault>(*job_);
  life_->rounds.emplace(job_->shape.layers(), job_->staleness);
  life_->exchanges.set_rounds(life_->rounds->all().size());
  advance(FleetEvent::kPrepared, now);
}

void FleetEngine::arrived(const net::Arrived& event, Instant now) {
  const std::uint32_t channel = event.message.channel;
  if (channel == kQueryChannel) {
    if (const auto wrong = LeadQuestions::objection(event)) return member().blame(event.from, *wrong, now);
    life_->questions.on(event);
    return answer();
  }
  if (channel == kStepChannel || channel == kRecoveryChannel) carry_out(life_->exchanges.on(event), now);
}

void FleetEngine::want(FleetTask task, Work work) {
  if (life_->look) life_->upkeep.push_back(std::exchange(life_->look, {}));
  in_hand_.want(task, life_->bench, std::exchange(life_->upkeep, {}), std::move(work));
}

cluster::Engine::Work FleetEngine::take_work() { return in_hand_.take(); }

void FleetEngine::worked(Instant now) {
  const auto [done, at] = in_hand_.done();
  if (done == FleetTask::kPreparing && at->job.ok()) job_ = *at->job;
  if (!lives()) return;
  if (life_->bench != at) return prepare(now);
  if (done == FleetTask::kPreparing && !at->job.ok()) return fail(at->job.error(), now);
  if (!at->delivered.ok()) return fail(at->delivered.error(), now);
  const bool looked = std::exchange(at->looked, std::nullopt).has_value();
  // A lie beside a good snapshot ends the view, and with it the snapshot: it must not be stored in the next
  // one.
  if (!at->taken.ok()) return given_in_vain(now);
  computed(done, *at, now);
  if (looked && lives()) store_snapshot(now);
  if (life_ == nullptr) return;
  if (life_->look && in_hand_.idle()) want(FleetTask::kLooking, [] {});
  answer();
  if (life_->must_report && in_hand_.idle()) report(now);
  if (life_->saves_alone) save_alone();
}

void FleetEngine::computed(FleetTask done, FleetWorkbench& at, Instant now) {
  switch (done) {
    case FleetTask::kNothing: break;
    case FleetTask::kPreparing: prepared(now); break;
    case FleetTask::kRecovering: advance(FleetEvent::kStageComputed, now); break;
    case FleetTask::kSnapshot:
      advance(FleetEvent::kSnapshotCut, now);
      at.deltas.clear();
      break;
    case FleetTask::kStepping: round_done(now); break;
    case FleetTask::kSaving:
    case FleetTask::kDelivering:
      if (done == FleetTask::kDelivering) open_to_questions(now);
      if (life_->alone) install(now);
      if (lives()) go_on(now);
      break;
    case FleetTask::kAhead:
    case FleetTask::kLooking: go_on(now); break;
    case FleetTask::kAnswering:
      if (at_work()) life_->questions.give(std::move(at.answer), now);
      break;
  }
}

// What came is not applied. If another member gave it, that one is to blame. The view will change: either it
// is fenced, or the two have lost their link.
void FleetEngine::given_in_vain(Instant now) {
  const Error error = std::exchange(life_->bench->taken, {}).error();
  const auto giver = std::exchange(life_->bench->giver, std::nullopt);
  if (!giver || life_->exchanges.member(*giver) == member().self()) return fail(error, now);
  blame(*giver, error, now);
  if (lives() && life_->must_report && in_hand_.idle()) report(now);
  if (lives() && life_->saves_alone) save_alone();
}

// Ranks are those of the exchange in which it was given. In a newer view that node may have another life,
// which gave nothing.
void FleetEngine::blame(std::size_t rank, const Error& error, Instant now) {
  reach(FleetProbe::kGivenInVain);
  if (const auto peer = life_->exchanges.member(rank)) member().blame(*peer, error, now);
  if (life_ != nullptr) advance(FleetEvent::kLost, now);
}

// All changes of a life's state.
void FleetEngine::advance(FleetEvent event, Instant now) {
  const FleetTransition* const row = fleet_transition(life_->state, event);
  if (row == nullptr) return;
  if (row->to) life_->state = *row->to;
  act(row->action, now);
}

void FleetEngine::act(FleetAction action, Instant now) {
  switch (action) {
    case FleetAction::kNone: return;
    case FleetAction::kTellReady: return member().ready(now);
    case FleetAction::kRest: return rest(now);
    case FleetAction::kBeginRecovery: return begin_recovery(now);
    case FleetAction::kTakeStage: return take_stage(now);
    case FleetAction::kNextStage: return next_stage(now);
    case FleetAction::kTellApplied: return tell_applied(now);
    case FleetAction::kComputeRound: return compute_round();
    case FleetAction::kSave: return save_checkpoint();
    case FleetAction::kHalt: return halt(now);
    case FleetAction::kSnapshot: return snapshot();
    case FleetAction::kGiveSnapshot: return give_snapshot(now);
    case FleetAction::kGoOn: return go_on(now);
    case FleetAction::kDeliver: return deliver(now);
    case FleetAction::kLeaveOnceSaved: return leave_once_saved(now);
    case FleetAction::kLeave:
      if (failure()) return member().leave_now(life_->leaves_because, now);
      return member().leave(life_->leaves_because, now);
  }
}

// Whether this member exchanges something with the others of its layout.
bool FleetEngine::at_work() const { return takes_steps(*life_); }

bool takes_steps(const FleetLife& life) {
  const FleetState state = life.state;
  return state != FleetState::kPreparing && state != FleetState::kResting && state != FleetState::kLeaving;
}

void FleetEngine::leave(FleetEvent why, std::string reason, Instant now) {
  if (life_ == nullptr) return member().leave(reason, now);
  life_->leaves_because = std::move(reason);
  advance(why, now);
}

void FleetEngine::exchange(const ExchangeName& name, const cluster::Operation& operation, Slices given,
                           Instant now) {
  carry_out(life_->exchanges.begin(name, operation, std::move(given)), now);
}

void FleetEngine::exchanged(const ExchangeName& name, std::vector<Slices> got, Instant now) {
  switch (name.kind) {
    case ExchangeName::Kind::kSnapshot: return snapshot_exchanged(name.round, std::move(got), now);
    case ExchangeName::Kind::kHalted:
      life_->others_halted = true;
      if (life_->halted) leave(FleetEvent::kAllHalted, why_it_ends(), now);
      return;
    case ExchangeName::Kind::kStage:
      life_->bench->got = std::move(got);
      return advance(FleetEvent::kStageExchanged, now);
    case ExchangeName::Kind::kRound:
      if (const auto liar = life_->wishes.given(name.step, got)) return blame(liar->rank, liar->error, now);
      life_->rounds->give({.step = name.step, .round = name.round}, std::move(got));
      return go_on(now);
  }
}

void FleetEngine::carry_out(cluster::CollectiveEvents events, Instant now) {
  for (cluster::CollectiveEvent& event : events) {
    if (failure() || life_ == nullptr) return;
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      if (life_->job->falsify && !send->message.payload.empty()) life_->job->falsify(send->message.payload);
      life_->exchanges.send(std::move(*send), now);
    } else if (auto* const completed = std::get_if<cluster::Completed>(&event)) {
      // At rest, too, it takes what others have given for the step under way.
      const ExchangeName name = life_->exchanges.name_of(completed->id);
      if (at_work() || name.kind == ExchangeName::Kind::kRound)
        exchanged(name, std::move(completed->result), now);
    } else if (const auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      member().blame(broken->peer, broken->error, now);
    } else if (const auto* const much = std::get_if<cluster::TooMuchKept>(&event)) {
      member().part(much->peer, now);
    } else {
      // Members that all leave by themselves, and not because the run ends, get another view.
      const bool ends = at_work() && ((stopping_ && member().stop()) || life_->halted);
      advance(ends ? FleetEvent::kLostAtEnd : FleetEvent::kLost, now);
      if (ends) return;
    }
  }
}

}  // namespace gossamer::sparse_engine
