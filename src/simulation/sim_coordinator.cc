// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace gossamer::simulation {
namespace {

// Somewhat less than Watch::kAskAfter: the coordinator's clock may be fast.
constexpr Duration kSilence{900'000'000};

}  // namespace

SimCoordinator::SimCoordinator(host::Timeline& timeline, host::SimInternet& internet, Options options,
                               const Run& run, Trace trace)
    : SimProcess(timeline, internet, options.machine, options.machine, options.certificate, options.clock),
      run_(run),
      held_to_store_(run.durable),
      slander_(run.lies),
      lead_watch_({.machine = options.machine, .freeze_time = options.process.coordinator.freeze_time},
                  run.durable),
      has_standby_(options.process.coordinator.coordinators.size() > 1),
      store_(run.medium.open()),
      rng_(options.process.seed, Purpose::kFault, 8),
      trace_(std::move(trace)) {
  const net::PeerAddress address =
      cluster::address_of(cluster::kCoordinatorNode, options.process.coordinator.listening);
  const auto control = network().listen(address.control, host::Lane::kControl);
  const auto bulk = network().listen(address.bulk, host::Lane::kBulk);
  CHECK(control.ok() && bulk.ok());
  options.process.keep_every = store_->keep_every();
  options.process.lead_time = store_->lead_time();
  options.process.coordinator.witness = this;
  options.process.watch_links = [this](const net::LinkEvent& event) { watch_link(event); };
  process_ = std::make_unique<cluster::CoordinatorProcess>(std::move(options.process), network(),
                                                           run.workload, now());
  go_on();
}

SimCoordinator::~SimCoordinator() {
  process_.reset();
  silence();
}

void SimCoordinator::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  process_->on(std::move(event), now());
  go_on();
}

void SimCoordinator::on_timer() {
  process_->tick(now());
  judge_stay();
  go_on();
}

void SimCoordinator::watch_link(const net::LinkEvent& event) {
  if (const auto* const up = std::get_if<net::LinkUp>(&event)) lead_watch_.linked(up->peer, now());
  if (const auto* const broken = std::get_if<net::LinkBroken>(&event)) lead_watch_.broken(broken->peer);
  if (const auto* const ended = std::get_if<net::LinkEnded>(&event)) lead_watch_.broken(ended->peer);
}

// The process has just looked whether it hears anybody.
void SimCoordinator::judge_stay() {
  const cluster::Coordinator* const lead = process_->coordinator();
  if (lead == nullptr) return;
  using Phase = cluster::CoordinatorPhase;
  if (lead->phase() == Phase::kStopping) return lead_watch_.ends(now());
  if (!has_standby_) return;
  const auto elsewhere = [this](const auto& one) { return one.second.machine() != machine(); };
  if (std::ranges::none_of(lead->view().members(), elsewhere)) return;
  if (const auto what = lead_watch_.stays(now(), lead->awaits_rest(now()))) run_.invariants.broke(*what);
}

void SimCoordinator::go_on() {
  if (auto next = process_->next_call(now())) call(std::move(*next));
  cluster::Coordinator* const coordinator = process_->coordinator();
  tell_lead();
  if (coordinator != nullptr) {
    for (const cluster::RunEvent& event : coordinator->take_events()) {
      if (event.kind == "begun") lead_watch_.begun(now());
      if (event.kind == "serving") lead_watch_.serves(event.peer.incarnation);
      if (event.kind == "disputed") judge_dispute(event);
      if (event.kind == "lost") judge_loss(event);
      if (!trace_) continue;
      trace_(machine(),
             fmt::format("{} node {} incarnation {} in epoch {}: {}", event.kind, event.peer.node.value,
                         event.peer.incarnation.value, event.epoch.value, event.text));
    }
  }
  arm(process_->next_wakeup());
}

void SimCoordinator::tell_lead() {
  const bool leads = process_->coordinator() != nullptr;
  const Generation led = leads ? process_->generation() : Generation();
  if (led == led_) return;
  led_ = led;
  last_heard_.clear();
  held_to_store_.forget();
  slander_.forget();
  lead_watch_.ended(now());
  if (leads) lead_watch_.began(now());
  led_since_ = timeline().now();
  if (trace_) trace_(machine(), leads ? fmt::format("leads, generation {}", led.value) : "leads no more");
}

void SimCoordinator::judge_loss(const cluster::RunEvent& lost) {
  if (const auto what = lead_watch_.fenced(lost.peer, lost.text, now())) run_.invariants.broke(*what);
  if (slander_.framed(lost.peer)) run_.framed(lost.peer.incarnation);
  slander_.gone(lost.peer);
}

void SimCoordinator::judge_dispute(const cluster::RunEvent& disputed) {
  if (slander_.disputes_with_liars(disputed.peer)) run_.framed(disputed.peer.incarnation);
  if (const auto what = slander_.has_to_go(disputed.peer)) run_.invariants.broke(*what);
}

void SimCoordinator::heard(net::PeerId from, const membership::ToCoordinator& said) {
  tell_lead();
  const bool newest = process_->generation() == run_.medium.generation();
  held_to_store_.heard(from, said, newest ? HeldToStore::Lead::kNewest : HeldToStore::Lead::kReplaced,
                       timeline().now());
  lead_watch_.heard(from, said, now());
  slander_.heard(from, said);
  count(from, said);
}

void SimCoordinator::count(net::PeerId from, const membership::ToCoordinator& said) {
  const bool request = said.has_lease() || said.has_claim() || said.has_commit();
  ++(said.has_beat() ? run_.traffic.beats : request ? run_.traffic.requests : run_.traffic.others);
  const Instant at = timeline().now();
  const Instant before = std::exchange(last_heard_.try_emplace(from.incarnation, at).first->second, at);
  if (at - before > kSilence) ++run_.traffic.silences;
}

void SimCoordinator::said(net::PeerId to, const membership::ToMember& said) {
  if (const auto what = held_to_store_.missing(to, said)) {
    run_.invariants.broke(
        fmt::format("a coordinator says to incarnation {} what rests on {}, before the "
                    "store has it",
                    to.incarnation.value, *what));
  }
  if (const auto what = held_to_store_.withheld(to, said))
    run_.invariants.broke(fmt::format("a coordinator refuses {}", *what));
  if (said.has_claim()) {
    if (auto wrong = run_.claims.answered(to.incarnation, said.claim()))
      run_.invariants.broke(*std::move(wrong));
  }
  const bool answer = said.has_lease() || said.has_claim() || said.has_commit();
  Traffic& all = run_.traffic;
  ++(said.has_beat_seen() ? all.beats_seen
     : answer             ? all.answers
     : said.has_doubt()   ? all.doubts
                          : all.others);
}

void SimCoordinator::began(const membership::BeginAnswer& answer) {
  if (const auto what = run_.durable.missing(answer))
    run_.invariants.broke(fmt::format("Begin is answered with {}, before the store has it", *what));
}

// Makes a call of the store. It reaches the store after a while, and its answer takes another.
void SimCoordinator::call(cluster::StoreCall call) {
  // A disk hiccups now and then.
  const auto away = [this] {
    const double most_ms = rng_.below(20) == 0 ? 600 : 8;
    return from_milliseconds(0.2 + most_ms * static_cast<double>(rng_.uniform()));
  };
  after(away(), [this, away, call = std::move(call)] {
    if (timeline().now() < away_until_) {
      store_->restart_count({.fail_at_operation = 0});
    } else if (failing_ > 0 && --skipped_ < 0) {
      host::SimStoreFaults faults;
      // The caller cannot know whether a failed call was carried out.
      (failing_ % 2 == 1 ? faults.lose_answer_at_operation : faults.fail_at_operation) = 0;
      store_->restart_count(faults);
      --failing_;
    } else {
      store_->restart_count({});
    }
    cluster::StoreAnswer answer = cluster::carry_out(*store_, call);
    const auto* const done = std::get_if<Result<void>>(&answer);
    if (std::holds_alternative<cluster::Commit>(call) && done != nullptr && done->ok()) {
      run_.invariants.wrote(process_->generation(), run_.medium.generation());
      held_to_store_.proven(timeline().now());
    }
    after(away(), [this, answer = std::move(answer)] {
      process_->answered(answer, now());
      go_on();
    });
  });
}

}  // namespace gossamer::simulation
