// SPDX-License-Identifier: Apache-2.0
//
// PipelineEngine: the Work of a step, and its messages.
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "base/check.h"
#include "cluster/control/view.h"
#include "engines/pipeline/fleet/pipeline_engine.h"
#include "net/link/channels.h"

namespace gossamer::pipeline {
namespace {

engine::SentBytes sent_bytes(const net::Links& links) {
  engine::SentBytes sent;
  for (const std::uint32_t channel : {net::kPipelineSteps, net::kPipelineSums, net::kPipelineRecords})
    sent.steps += links.sent_bytes(channel);
  sent.background = links.sent_bytes() - sent.steps;
  return sent;
}

}  // namespace

// Work.

cluster::Engine::Work PipelineEngine::take_work() {
  if (life_ == nullptr || in_hand_ || !lives()) return {};
  if (life_->wanted.empty()) {
    if (!life_->flow || !life_->grants) return {};
    const auto job = life_->flow->next(life_->bench->stage->is_short());
    if (!job) return {};
    want(task_of(*job));
  }
  in_hand_ = std::move(life_->wanted.front());
  life_->wanted.pop_front();
  in_hand_at_ = life_->bench;
  return [run = in_hand_->run, bench = in_hand_at_] { run(*bench); };
}

PipelineTask PipelineEngine::task_of(const MicrobatchFlow::Job& job) {
  using Kind = MicrobatchFlow::Kind;
  Slices sent;
  if (job.kind == Kind::kForward) sent = std::exchange(life_->came_forward[job.microbatch], {});
  if (job.kind == Kind::kBackward) sent = std::exchange(life_->came_backward[job.microbatch], {});
  return microbatch_task(life_->step.attempt(), job, std::move(sent));
}

void PipelineEngine::worked(Instant now) {
  const Task task = *std::exchange(in_hand_, std::nullopt);
  const PipelineWorkbenchRef at = std::exchange(in_hand_at_, nullptr);
  if (!lives() || life_->bench != at) return;
  const std::string_view objection = std::exchange(at->objection, {});
  if (task.kind == TaskKind::kJob) {
    if (!at->job.ok()) return fail(at->job.error(), now);
    return prepared(now);
  }
  if (!at->more.ok()) return fail(Error(at->more.error()), now);
  if (task.kind == TaskKind::kKeep) return leave_if_kept(now);
  // Work of an attempt that is over means nothing, but for an update.
  const bool counts = task.kind == TaskKind::kUpdate || task.attempt == life_->step.attempt();
  const StepPhase phase = life_->step.phase();
  if (!counts || (phase == StepPhase::kResting && task.kind != TaskKind::kUpdate)) {
    at->given.clear();
    return;
  }
  if (!objection.empty()) {
    const bool forward = task.job.kind == MicrobatchFlow::Kind::kForward;
    const auto giver =
        forward ? life_->flow->sender_of(task.job.microbatch) : life_->flow->receiver_of(task.job.microbatch);
    return blame(life_->peers.at(*giver), objection, now);
  }
  done(task, *at, now);
}

void PipelineEngine::done(const Task& task, PipelineWorkbench& bench, Instant now) {
  switch (task.kind) {
    case TaskKind::kJob:
    case TaskKind::kKeep: break;
    case TaskKind::kStage: carry_out(life_->step.loaded(bench.root, {}), now); break;
    case TaskKind::kBegin:
      life_->grants = true;
      flow_on(now);
      break;
    case TaskKind::kMicrobatch: microbatch_done(task, bench, now); break;
    case TaskKind::kContribution:
      if (life_->exchanges.sums_alone()) {
        want(sum_task(task.attempt, std::nullopt));
      } else {
        PipelineExchanges::Events events;
        life_->exchanges.sum(task.attempt, bench.stage->gradient_numbers(), bench.stage->sum_numbers(),
                             std::exchange(bench.given, {}), events);
        carry_out(std::move(events), now);
      }
      break;
    case TaskKind::kTakeSum: carry_out(life_->step.summed(task.attempt, bench.sum), now); break;
    case TaskKind::kUpdate:
      if (*bench.more) {
        life_->wanted.push_front(task);
      } else {
        updated(bench, now);
      }
      break;
  }
}

void PipelineEngine::microbatch_done(const Task& task, PipelineWorkbench& bench, Instant now) {
  using Kind = MicrobatchFlow::Kind;
  if (*bench.more) return;
  const std::uint64_t microbatch = task.job.microbatch;
  life_->flow->done(task.job);
  Slices given = std::exchange(bench.given, {});
  switch (task.job.kind) {
    case Kind::kForward: life_->to_forward[microbatch] = std::move(given); break;
    case Kind::kBackward:
      life_->to_backward[microbatch] = std::move(given);
      if (*life_->step.stage() == 0) carry_out(life_->step.back(task.attempt), now);
      break;
    case Kind::kProducts:
      ++counters_.microbatches;
      carry_out(life_->step.added(task.attempt), now);
      break;
  }
  if (lives()) flow_on(now);
}

void PipelineEngine::updated(PipelineWorkbench& bench, Instant now) {
  ++counters_.steps;
  auto applied = std::exchange(life_->applying, std::nullopt);
  const StepActions actions = life_->step.written(bench.root);
  const StepNumber next = life_->step.next_step();
  member().applied(kTrack, next);
  // All members of the stage save the same bits, and any of them may be lost.
  const std::uint64_t every = life_->job->save_every;
  const bool due = actions.save || (every > 0 && next.value % every == 0);
  if (life_->job->save && due) want(save_task(life_->job, next));
  kept_at_end_ = kept_at_end_ || (stops_.has_value() && actions.save);
  if (applied && on_applied_) {
    applied->sent = sent_bytes(*process().links());
    on_applied_(*applied);
  }
  carry_out(actions, now);
  if (lives()) deliver_at_end();
}

cluster::Engine::Work PipelineEngine::take_side_work() {
  if (life_ == nullptr || !lives()) return {};
  return life_->exchanges.take_side_work();
}

void PipelineEngine::side_worked(Instant now) {
  if (life_ == nullptr || !lives()) return;
  PipelineExchanges::Events events;
  life_->exchanges.side_worked(events);
  carry_out(std::move(events), now);
}

// Exchanges.

void PipelineEngine::carry_out(PipelineExchanges::Events events, Instant now) {
  for (PipelineExchanges::Event& event : events) {
    if (!lives()) return;
    if (auto* const send = std::get_if<PipelineExchanges::Send>(&event)) {
      // False for a peer that is no member any more: then the view is changing.
      static_cast<void>(member().send(send->to, send->lane, std::move(send->message), now));
    } else if (auto* const summed = std::get_if<PipelineExchanges::Summed>(&event)) {
      const Attempt here = life_->step.attempt();
      const bool counts =
          life_->step.phase() == StepPhase::kSumming && summed->id == PipelineExchanges::number_of(here);
      if (counts) want(sum_task(here, std::move(summed->sum)));
    } else if (const auto* const all = std::get_if<PipelineExchanges::Gathered>(&event)) {
      gathered(*all, now);
    } else if (const auto* const broken = std::get_if<PipelineExchanges::Broken>(&event)) {
      member().blame(broken->peer, broken->error, now);
    } else {
      carry_out(life_->step.lost(), now);
    }
  }
}

void PipelineEngine::gathered(const PipelineExchanges::Gathered& all, Instant now) {
  const Attempt here = life_->step.attempt();
  if (all.id != PipelineExchanges::number_of(here)) return;
  Records records;
  for (const auto& [node, bytes] : all.records) {
    const auto record = read_record(bytes);
    CHECK(record.has_value(), node.value);  // the exchange gives no other sizes
    records[node] = *record;
  }
  double loss = 0;
  const auto last = static_cast<std::uint32_t>(life_->decision->layout.stages.size() - 1);
  for (const auto& [node, record] : records) {
    if (life_->decision->layout.members.at(node) == last) loss += record.loss;
  }
  const auto tokens = static_cast<double>(life_->job->tokens());
  const StepActions actions = life_->step.records(here, records, life_->job->tokens());
  if (actions.update) {
    life_->applying = Applied{.epoch = here.epoch,
                              .step = here.step,
                              .loss = loss / tokens,
                              .norm = std::sqrt(actions.update->total) / tokens};
  }
  carry_out(actions, now);
}

// Messages.

void PipelineEngine::arrived(const net::Arrived& event, Instant now) {
  const std::uint32_t channel = event.message.channel;
  if (channel == net::kPipelineSteps) return on_step_message(event, now);
  if (channel != net::kPipelineSums && channel != net::kPipelineRecords) return;
  PipelineExchanges::Events events;
  life_->exchanges.on(event, events);
  carry_out(std::move(events), now);
}

void PipelineEngine::on_step_message(const net::Arrived& event, Instant now) {
  const auto message = read_step_message(event.message);
  if (!message) {
    return member().blame(
        event.from, {.kind = ErrorKind::kBadData, .what = "a message of a step that cannot be read"}, now);
  }
  const Attempt here = life_->step.attempt();
  const bool later = comes_before(here, message->attempt);
  // A member that still loads its stage has the attempt of the others, and no flow.
  const bool early = later || (message->attempt == here && !life_->flow);
  if (const auto* const credit = std::get_if<Credit>(&message->what); credit != nullptr && early) {
    auto& [attempt, total] = life_->early_credits[event.from];
    if (!comes_before(message->attempt, attempt)) {
      attempt = message->attempt;
      total = credit->total;
    }
    return;
  }
  if (std::holds_alternative<AllBack>(message->what)) {
    const bool may_say = is_of_layout(event.from) && life_->step.stage_of(event.from.node) == 0U;
    if (message->attempt == here && !may_say)
      return blame(event.from, "AllBack of a member that is not of the first stage", now);
    carry_out(life_->step.all_back(event.from.node, message->attempt), now);
    return;
  }
  if (later) return blame(event.from, "a tensor of an attempt that nobody has begun", now);
  if (message->attempt != here || !life_->flow) return;  // of an attempt that is over
  judge(*message, event, now);
}

void PipelineEngine::judge(const StepMessage& message, const net::Arrived& event, Instant now) {
  if (!is_of_layout(event.from)) return blame(event.from, "a message of a member without a stage", now);
  const NodeId from = event.from.node;
  std::string_view broken;
  if (const auto* const credit = std::get_if<Credit>(&message.what)) {
    broken = life_->flow->credit_came(from, credit->total);
  } else if (const auto* const forward = std::get_if<Forward>(&message.what)) {
    broken = life_->flow->forward_came(from, forward->microbatch);
    if (broken.empty() && !life_->step.came(message.attempt))
      broken = "a boundary after all gradients are back";
    if (broken.empty()) life_->came_forward[forward->microbatch] = event.message.payload;
  } else if (const auto* const backward = std::get_if<Backward>(&message.what)) {
    broken = life_->flow->backward_came(from, backward->microbatch);
    if (broken.empty()) life_->came_backward[backward->microbatch] = event.message.payload;
  }
  if (!broken.empty()) return blame(event.from, broken, now);
  flow_on(now);
}

// Sends what may go now.
void PipelineEngine::flow_on(Instant now) {
  if (!life_->flow || !life_->grants) return;
  const Attempt here = life_->step.attempt();
  for (auto early = life_->early_credits.begin(); early != life_->early_credits.end();) {
    const auto& [from, said] = *early;
    if (said.first != here) {
      const bool over = comes_before(said.first, here);
      early = over ? life_->early_credits.erase(early) : std::next(early);
      continue;
    }
    const net::PeerId giver = from;
    const std::string_view broken = is_of_layout(giver) ? life_->flow->credit_came(giver.node, said.second)
                                                        : "a credit of a member without a stage";
    early = life_->early_credits.erase(early);
    if (!broken.empty()) blame(giver, broken, now);
    if (!life_ || !life_->flow) return;
  }
  while (const auto sending = life_->flow->next_backward()) {
    const auto found = life_->to_backward.extract(sending->microbatch);
    send(sending->to, host::Lane::kBulk,
         write_step_message({.attempt = here, .what = Backward{sending->microbatch}}, found.mapped()), now);
  }
  while (const auto sending = life_->flow->next_forward()) {
    const auto found = life_->to_forward.extract(sending->microbatch);
    send(sending->to, host::Lane::kBulk,
         write_step_message({.attempt = here, .what = Forward{sending->microbatch}}, found.mapped()), now);
  }
  for (const GrantedCredits::Grant& grant : life_->flow->grants())
    send(grant.to, host::Lane::kBulk, write_step_message({.attempt = here, .what = Credit{grant.total}}),
         now);
}

void PipelineEngine::say_all_back(Instant now) {
  const Attempt here = life_->step.attempt();
  for (const auto& [node, peer] : life_->peers) {
    if (peer != member().self())
      send(node, host::Lane::kBulk, write_step_message({.attempt = here, .what = AllBack{}}), now);
  }
}

void PipelineEngine::send(NodeId to, host::Lane lane, net::Message message, Instant now) {
  counters_.boundary_bytes += net::counted_bytes(message);
  static_cast<void>(member().send(life_->peers.at(to), lane, std::move(message), now));
}

// The attempt cannot end without a member of the layout. What others say takes nothing from it.
void PipelineEngine::blame(net::PeerId peer, std::string_view rule, Instant now) {
  const bool of_layout = is_of_layout(peer);
  member().blame(peer, {.kind = ErrorKind::kBadData, .what = std::string(rule)}, now);
  if (lives() && of_layout) carry_out(life_->step.lost(), now);
}

}  // namespace gossamer::pipeline
