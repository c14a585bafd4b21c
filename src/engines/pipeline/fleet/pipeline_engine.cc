// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/pipeline_engine.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"
#include "net/link/channels.h"

namespace gossamer::pipeline {
namespace {

// How long a member that is to end waits for the step with which all save: a dead member may be in it.
constexpr Duration kEndTime = from_seconds(30);

}  // namespace

void PipelineEngine::begin(const cluster::LifeBegun& event, Instant) {
  const auto gone = [this](net::PeerId peer) { return member().view().fenced().contains(peer.incarnation); };
  life_.reset(new Life{.step = StepMember({.self = event.self.node, .defect = defect_}),
                       .exchanges = PipelineExchanges(event.self, gone)});
  want(job_task(make_job_, event.configuration));
}

void PipelineEngine::prepared(Instant now) {
  life_->job = *life_->bench->job;
  life_->step = StepMember({.self = member().self().node, .end = life_->job->end, .defect = defect_});
  member().ready(now);
}

// What the coordinator says.

void PipelineEngine::freeze(Instant now) {
  if (life_->job == nullptr) return;
  carry_out(life_->step.change(Epoch(member().view().epoch()), StepMember::Change::kHard), now);
}

void PipelineEngine::install(Instant now) {
  if (life_->job == nullptr) return;
  const membership::Install& installed = member().installed();
  auto decision = read_decision(installed.decision());
  const bool fits = decision && decision->layout.epoch.value == installed.epoch() &&
                    decision->layout.stages.back().last == life_->job->layers;
  if (!fits) {
    return fail({.kind = ErrorKind::kBadData,
                 .what = "the decision of the coordinator cannot be read, or is of another model",
                 .fix = "look whether all nodes run the same version"},
                now);
  }
  if (!life_->step.takes(decision->layout)) return;
  const NodeId self = member().self().node;
  if (decision->layout.members.contains(self)) {
    // Not all are in the view: it changes again, and another decision comes.
    if (!life_->exchanges.install(member().view(), decision->layout.epoch, decision->layout.members)) return;
    life_->peers.clear();
    for (const auto& [node, stage] : decision->layout.members)
      life_->peers[node] = cluster::peer_of(member().view().members().at(node));
  }
  life_->decision = std::move(decision);
  life_->delivers = false;
  const StepActions actions = life_->step.install(for_member(*life_->decision, self));
  if (stops_) life_->step.wish(kWishEnd);
  carry_out(actions, now);
  if (lives()) deliver_at_end();
  if (life_ && lives() && leaving() && !life_->decision->layout.members.contains(self))
    member().leave(*leaving(), now);
}

// An earlier or later life of such a member is another one.
bool PipelineEngine::is_of_layout(net::PeerId peer) const {
  const auto found = life_->peers.find(peer.node);
  return found != life_->peers.end() && found->second == peer;
}

void PipelineEngine::lost(net::PeerId peer, Instant now) {
  PipelineExchanges::Events events;
  life_->exchanges.lost(peer, events);
  const bool of_layout = is_of_layout(peer);
  carry_out(std::move(events), now);
  if (lives() && of_layout) carry_out(life_->step.lost(), now);
}

// A member alone cannot save what others can go on from: their states would be a step apart.
void PipelineEngine::stop(const std::string& reason, Instant now) {
  const bool has_step = life_ != nullptr && life_->job != nullptr && life_->job->save &&
                        life_->step.stage() &&
                        (!life_->job->end || life_->step.next_step() < *life_->job->end);
  if (!has_step) return member().leave(reason, now);
  if (stops_) return;
  stops_ = reason;
  leaves_by_ = now + kEndTime;
  life_->step.wish(kWishEnd);
}

void PipelineEngine::tick(Instant now) {
  if (!leaves_by_ || *leaves_by_ > now) return;
  leaves_by_.reset();
  if (lives()) member().leave(*stops_, now);
}

void PipelineEngine::leave_if_kept(Instant now) {
  if (!stops_ || !kept_at_end_) return;
  leaves_by_.reset();
  member().leave(*stops_, now);
}

// What the step asks for.

void PipelineEngine::carry_out(const StepActions& actions, Instant now) {
  if (actions.stop) stop_all();
  if (actions.leave) {
    return process().begin_anew({.what = "this member cannot follow the others' decision, and begins anew"},
                                now);
  }
  if (actions.begin) begin_attempt(*actions.begin);
  if (actions.all_back) say_all_back(now);
  if (actions.sum) want(contribution_task(*actions.sum, life_->exchanges.sums_alone()));
  if (actions.records) {
    PipelineExchanges::Events events;
    life_->exchanges.gather(life_->step.attempt(), write_record(*actions.records), events);
    carry_out(std::move(events), now);
    if (!lives()) return;
  }
  if (actions.update) want(update_task(*actions.update));
  if (actions.load) want_stage(*actions.load, now);
  if (actions.report) member().frozen(write_report(life_->step.report()), {}, now);
}

void PipelineEngine::stop_all() {
  std::erase_if(life_->wanted, [](const Task& task) { return task.kind != TaskKind::kKeep; });
  life_->flow.reset();
  life_->grants = false;
  life_->exchanges.stop();
}

void PipelineEngine::begin_attempt(const Attempt& attempt) {
  if (life_->begun && life_->begun->step == attempt.step && life_->begun->lineage == attempt.lineage)
    ++counters_.again;
  life_->begun = attempt;
  for (auto* const queue :
       {&life_->came_forward, &life_->came_backward, &life_->to_forward, &life_->to_backward})
    queue->clear();
  const Stages& stages = life_->decision->layout.members;
  const std::uint32_t own = *life_->step.stage();
  MicrobatchFlow::Options options{.microbatches = life_->job->microbatches(),
                                  .credits = {.room = life_->job->room}};
  for (const auto& [node, stage] : stages) {
    if (stage + 1 == own) options.senders.push_back(node);
    if (stage == own + 1) options.receivers.push_back(node);
  }
  if (own == 0) {
    const NodeId self = member().self().node;
    options.first_own = first_microbatch(*life_->decision, self);
    options.own = life_->decision->dealt.at(self);
  }
  life_->flow.emplace(options);
  life_->grants = false;
  want(begin_task(attempt));
}

// Peers have the same bits, so the first holder of each stage keeps it.
void PipelineEngine::deliver_at_end() {
  const auto stage = life_->step.stage();
  const bool over = life_->job->end && life_->step.next_step() >= *life_->job->end &&
                    life_->step.phase() == StepPhase::kResting;
  if (!stage || !over || life_->delivers || !life_->job->deliver) return;
  for (const auto& [node, one] : life_->decision->layout.members) {
    if (one != *stage) continue;
    if (node != member().self().node) return;
    break;
  }
  life_->delivers = true;
  want(deliver_task(life_->job));
}

// Every member can make the stage that the run begins with.
void PipelineEngine::want_stage(std::uint32_t stage, Instant now) {
  if (life_->step.next_step() != life_->job->start) {
    return fail({.what = "a stage of a run under way cannot be fetched from other members yet"}, now);
  }
  const DecidedLayout::Stage layers = life_->decision->layout.stages[stage];
  want(stage_task(life_->step.attempt(), life_->job, layers));
}

StageBench* PipelineEngine::bench() const {
  if (life_ == nullptr || in_hand_) return nullptr;
  return life_->bench->stage.get();
}

std::optional<cluster::Awaited> PipelineEngine::awaits() const {
  if (life_ == nullptr || in_hand_ || !life_->wanted.empty()) return std::nullopt;
  if (life_->step.phase() != StepPhase::kComputing) return life_->exchanges.awaits();
  cluster::Awaited awaited{.exchange = PipelineExchanges::number_of(life_->step.attempt()).value};
  if (life_->flow) {
    for (const auto& [node, count] : life_->flow->awaited()) {
      awaited.nodes.insert(node);
      awaited.messages += count;
    }
  }
  for (const NodeId node : life_->step.not_back()) {
    if (node == member().self().node) continue;
    awaited.nodes.insert(node);
    ++awaited.messages;
  }
  return awaited.messages == 0 ? std::nullopt : std::optional(awaited);
}

}  // namespace gossamer::pipeline
