// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_engine.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "base/aligned_array.h"
#include "cluster/control/view.h"

namespace gossamer::engine {
namespace {

constexpr Duration kLookEvery{100'000'000};
constexpr Duration kOthersTime{10'000'000'000};
constexpr Duration kRestTime{60'000'000'000};  // for the next view
// The exchange in which members say that their save lasts. Others have the numbers of steps.
constexpr cluster::OperationId kHalted{UINT64_MAX};

}  // namespace

void LockstepEngine::begin(const cluster::LifeBegun& event, Instant now) {
  const auto steps = prepare(event.configuration);
  if (!steps.ok()) return fail(steps.error(), now);
  const auto follows = [](cluster::OperationId earlier, cluster::OperationId later) {
    return earlier < later && later != kHalted;
  };
  const auto gone = [this](net::PeerId peer) { return member().view().fenced().contains(peer.incarnation); };
  life_.emplace(*steps, cluster::Collectives::Options{
                            .self = event.self, .channel = channel_, .follows = follows, .gone = gone});
  member().ready(now);
}

void LockstepEngine::lost(net::PeerId peer, Instant now) {
  if (!life_) return;
  cluster::CollectiveEvents events;
  life_->exchanges.lost(peer, events);
  carry_out(std::move(events), now);
}

void LockstepEngine::arrived(const net::Arrived& event, Instant now) {
  if (!life_ || event.message.channel != channel_) return;
  cluster::CollectiveEvents events;
  life_->exchanges.on(event.from, event.message, events);
  carry_out(std::move(events), now);
}

void LockstepEngine::tick(Instant now) {
  if (!life_ || !lives()) return;
  if (life_->look_again && *life_->look_again <= now) return go_on_halting(now);
  if (life_->next_step && *life_->next_step <= now) begin_step(now);
}

std::optional<Instant> LockstepEngine::next_wakeup() const {
  if (!life_ || failure()) return std::nullopt;
  if (!life_->look_again || !life_->next_step)
    return life_->look_again ? life_->look_again : life_->next_step;
  return std::min(*life_->look_again, *life_->next_step);
}

std::optional<StepNumber> LockstepEngine::step() const {
  if (!life_) return std::nullopt;
  return life_->step;
}

void LockstepEngine::freeze(Instant now) {
  if (!life_) return;
  life_->watch.frozen(now);
  life_->working = false;
  life_->next_step.reset();
  // What others have given for the step under way still comes.
  const bool leaves =
      life_->halting && life_->stop && !member().stop();  // as others have, and what it saved lasts
  if (!leaves) halt_no_more();
  if (!leaves && life_->stop) life_->look_again = now + kRestTime;
  member().frozen(report(life_->step), things(), now);
  if (leaves) halt_alone(now);
}

// The wish to halt goes with a step of the next view.
void LockstepEngine::halt_no_more() {
  life_->halting = life_->alone = life_->waits = false;
  life_->told_halted.reset();
  life_->others_halted = false;
  life_->look_again.reset();
}

void LockstepEngine::install(Instant now) {
  if (!life_ || life_->halting || Epoch(member().installed().epoch()) <= life_->installed) return;
  const std::vector<std::uint64_t> before = things();
  const auto taken = take_on(member().installed(), life_->step);
  if (!taken.ok()) return fail(taken.error(), now);
  life_->installed = Epoch(member().installed().epoch());
  life_->step = taken->step;
  life_->saved.reset();
  life_->late.reset();
  cluster::CollectiveEvents nobody_asks;
  life_->exchanges.lost(member().self(), nobody_asks);  // of the view before
  const std::vector<std::uint64_t> held = things();
  for (const std::uint64_t thing : before) member().dropped(cluster::TrackId(thing));
  for (const std::uint64_t thing : held) member().applied(cluster::TrackId(thing), life_->step);
  watch_change(taken->steps_replayed, now);
  life_->working = false;
  life_->next_step.reset();
  const auto& why = leaving() ? leaving() : life_->stop;
  if (why && held.empty()) return member().leave(*why, now);
  // In another view than the installed one, the next freeze is under way.
  if (held.empty() || member().view().epoch() != life_->installed) return;
  begin_exchanges(now);
  if (life_ && life_->working && life_->stop && !over()) ask_to_halt(now);
}

// While the run ends, a lost link brings no other view. Members that all leave by themselves get one.
bool LockstepEngine::view_stays() const {
  return life_->stop && (life_->halting || member().stop().has_value());
}

void LockstepEngine::watch_change(std::uint64_t steps_replayed, Instant now) {
  std::map<std::uint64_t, NodeId> holders;
  for (const membership::Holding& holding : member().installed().holdings())
    holders[holding.thing()] = NodeId(holding.node());
  RecoveryWatch::Change change{.epoch = life_->installed,
                               .members = {},
                               .changes = holders != life_->holders,
                               .steps_replayed = steps_replayed};
  for (const auto& [node, record] : member().view().members()) change.members[node] = {};
  for (const auto& [thing, node] : life_->holders) {
    if (const auto one = change.members.find(node); one != change.members.end()) one->second.before = true;
  }
  for (const auto& [thing, node] : holders) change.members[node].after = true;
  life_->holders = std::move(holders);
  life_->watch.installed(change, known_members(member().view()), now);
  life_->watch.recovered(now);
  life_->recent.clear();
}

void LockstepEngine::begin_exchanges(Instant now) {
  std::set<net::PeerId> holders;
  for (const auto& [thing, node] : life_->holders) {
    const auto record = member().view().members().find(node);
    if (record != member().view().members().end()) holders.insert(cluster::peer_of(record->second));
  }
  life_->members = holders.size();
  life_->rank = static_cast<std::size_t>(std::distance(holders.begin(), holders.find(member().self())));
  cluster::CollectiveEvents events;
  life_->exchanges.install({.epoch = life_->installed, .members = {holders.begin(), holders.end()}}, {},
                           events);
  life_->working = true;
  life_->others_wish = false;
  if (!over()) life_->next_step = now;
  carry_out(std::move(events), now);
  if (life_ && life_->working && over()) no_step_left(now);
}

void LockstepEngine::begin_step(Instant now) {
  life_->next_step.reset();
  life_->step_begun = now;
  auto input = std::make_shared<AlignedArray<float>>(summed());
  form(life_->step, input->span().first(life_->steps.elements), now);
  life_->wished = life_->steps.saves && life_->stop;
  if (life_->wished) input->span().back() = 1;
  const auto bytes = std::as_bytes(std::as_const(*input).span());
  exchange(
      cluster::OperationId(life_->step.value),
      {.kind = cluster::OperationKind::kAllReduce, .parts = cluster::equal_parts(summed(), life_->members)},
      Slice(std::move(input), bytes), now);
}

void LockstepEngine::exchange(cluster::OperationId id, const cluster::Operation& operation, Slice given,
                              Instant now) {
  cluster::CollectiveEvents events;
  life_->exchanges.begin(id, operation, {std::move(given)}, events);
  carry_out(std::move(events), now);
}

std::optional<cluster::Awaited> LockstepEngine::awaits() const {
  const auto missing = life_ && life_->working ? life_->exchanges.missing() : std::nullopt;
  if (!missing) return std::nullopt;
  cluster::Awaited awaited{.exchange = missing->id.value, .messages = missing->chunks};
  for (const net::PeerId peer : missing->members) awaited.nodes.insert(peer.node);
  return awaited;
}

void LockstepEngine::carry_out(cluster::CollectiveEvents events, Instant now) {
  const bool large = summed() * sizeof(float) > host::kBulkBytes;
  const host::Lane lane = large ? host::Lane::kBulk : host::Lane::kControl;
  for (cluster::CollectiveEvent& event : events) {
    if (failure()) return;
    if (auto* const send = std::get_if<cluster::Send>(&event)) {
      exchanged_bytes_ += net::counted_bytes(send->message);
      // False for a peer that is no member any more: then the view is changing.
      (void)member().send(send->to, lane, std::move(send->message), now);
    } else if (auto* const completed_now = std::get_if<cluster::Completed>(&event)) {
      completed(std::move(*completed_now), now);
    } else if (const auto* const broken = std::get_if<cluster::RuleBroken>(&event)) {
      member().blame(broken->peer, broken->error, now);
    } else if (const auto* const much = std::get_if<cluster::TooMuchKept>(&event)) {
      member().part(much->peer, now);
    } else {
      const bool worked = std::exchange(life_->working, false);  // until the view has changed
      if (worked && view_stays()) return halt_alone(now);
      if (worked) life_->look_again.reset();
    }
  }
}

// At rest a step is not applied: the coordinator knows how far this member was.
void LockstepEngine::completed(cluster::Completed what, Instant now) {
  if (what.id == kHalted) {
    // If steps followed all the same, the others may wait for bytes of the last one.
    life_->others_halted = life_->told_halted == life_->step;
    if (life_->waits && life_->others_halted) leave(now);
  } else if (life_->working) {
    if (!life_->halting) step_done(what.result.front(), now);
  } else if (what.id.value == life_->step.value) {
    life_->late = std::move(what.result.front());
  }
}

std::optional<float> LockstepEngine::take_step(const Slices& sum, Instant now) {
  std::vector<float> numbers(summed());
  copy_front(sum, std::as_writable_bytes(std::span(numbers)));
  const auto loss = apply(life_->step, std::span(numbers).first(life_->steps.elements));
  if (!loss.ok()) {
    fail(loss.error(), now);
    return std::nullopt;
  }
  ++life_->step;
  life_->others_halted = false;
  for (const std::uint64_t thing : things()) member().applied(cluster::TrackId(thing), life_->step);
  tell(*loss, now);
  return life_->steps.saves ? numbers.back() : 0;
}

void LockstepEngine::step_done(const Slices& sum, Instant now) {
  const auto wish = take_step(sum, now);
  if (!wish) return;
  if (over()) return no_step_left(now);
  if (life_->wished) return halt(now);
  if (*wish > 0) {
    const bool first = !std::exchange(life_->others_wish, true);
    if (first) save_once();
    if (life_->stop) return halt(now);
    if (first) tell_halted(now);
  }
  life_->next_step = std::max(now + life_->steps.pause, life_->step_begun + life_->steps.least);
  if (life_->stop) ask_to_halt(now);
}

void LockstepEngine::no_step_left(Instant now) {
  if (const auto finished = finish(); !finished.ok()) return fail(finished.error(), now);
  if (life_->stop) halt(now);
}

// Members may be a step apart, so the wish to halt goes with the next step.
void LockstepEngine::stop(const std::string& reason, Instant now) {
  if (!life_ || !life_->steps.saves || things().empty()) return member().leave(reason, now);
  if (std::exchange(life_->stop, reason)) return;
  if (!life_->working) return halt_alone(now);
  if (life_->halting) return go_on_halting(now);
  // If it has saved for another one, nobody can end the step that was begun.
  if (over() || life_->saved == life_->step) return halt(now);
  ask_to_halt(now);
}

// A dead member does not take its part in the step, so the wait has an end.
void LockstepEngine::ask_to_halt(Instant now) {
  if (life_->next_step) life_->next_step = now;  // else a step is under way
  life_->look_again = now + kOthersTime + Duration{2 * life_->took.ns};
}

void LockstepEngine::save_once() {
  if (life_->saved != life_->step) save(life_->step);
  life_->saved = life_->step;
}

// After the last step, finish() has kept what is held.
void LockstepEngine::halt(Instant now) {
  if (std::exchange(life_->halting, true)) return;
  life_->next_step.reset();
  if (!over()) save_once();
  go_on_halting(now);
}

// No other view comes, or this member waits for none. Members come to rest a step apart. If the sum of the
// step under way is here, or comes, others may have applied that step.
void LockstepEngine::halt_alone(Instant now) {
  life_->alone = true;
  life_->next_step.reset();
  if (life_->halting) return go_on_halting(now);
  if (const auto sum = std::exchange(life_->late, {})) {
    if (!take_step(*sum, now)) return;
    if (over()) return no_step_left(now);
  }
  halt(now);
}

// Others may still wait for bytes that this member has given them. They would be lost if it left now. So all
// tell each other when they have come so far. A member does not wait long for members that are dead.
void LockstepEngine::go_on_halting(Instant now) {
  life_->look_again.reset();
  if (!life_->halting) return halt_alone(now);
  if (!save_lasts()) {
    life_->look_again = now + kLookEvery;
    return;
  }
  if (life_->alone || life_->others_halted || std::exchange(life_->waits, true)) return leave(now);
  life_->look_again = now + kOthersTime + Duration{2 * life_->took.ns};
  tell_halted(now);
}

void LockstepEngine::tell_halted(Instant now) {
  if (life_->told_halted) return;
  life_->told_halted = life_->step;
  exchange(kHalted,
           {.kind = cluster::OperationKind::kAllGather,
            .parts = std::vector<std::uint64_t>(life_->members, 1),
            .from = {}},
           Slice::of(std::string(1, '\0')), now);
}

void LockstepEngine::leave(Instant now) {
  life_->look_again.reset();
  member().leave(life_->stop.value_or("the run was stopped"), now);
}

// Tells coordinator and engine. The cost of a recovery is known with the step after it.
void LockstepEngine::tell(std::optional<double> loss, Instant now) {
  const net::Links& links = *process().links();
  const std::uint64_t of_steps = links.sent_bytes(channel_);
  const SentBytes sent{.steps = of_steps, .background = links.sent_bytes() - of_steps};
  const StepNumber done(life_->step.value - 1);
  life_->took = now - life_->step_begun;
  if (loss) {
    life_->recent.add(*loss, sent);
    member().tell_steps(life_->recent.figures());
  }
  applied({.epoch = life_->installed,
           .step = done,
           .rank = life_->rank,
           .members = life_->members,
           .loss = loss.value_or(0),
           .sent = sent},
          life_->took);
  if (const auto recovery = life_->watch.stepped(done, now)) recovered(*recovery);
}

}  // namespace gossamer::engine
