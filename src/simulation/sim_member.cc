// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_member.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "cluster/control/control_message.h"
#include "simulation/hostile.h"

namespace gossamer::simulation {

SimMember::SimMember(host::Timeline& timeline, host::SimInternet& internet, Options options,
                     Invariants& invariants,
                     std::function<bool(Incarnation, const cluster::LeaseKeys&)> believes, Trace trace)
    : SimProcess(timeline, internet, options.machine, options.certificate, options.clock),
      node_(options.node),
      trace_(std::move(trace)),
      things_(options.things),
      rng_(options.process.seed, Purpose::kFault, 12) {
  const auto listen = [&](host::Lane lane) {
    const auto bound = network().listen({machine(), 0}, lane);
    CHECK(bound.ok());
    return *bound;
  };
  const net::PeerAddress address{
      .node = {}, .control = listen(host::Lane::kControl), .bulk = listen(host::Lane::kBulk)};
  if (options.hidden) {
    internet.hide(machine());
  } else {
    options.process.listening = cluster::listening_of(address);
  }
  const std::uint64_t seed = options.process.seed;
  options.process.falsify = [this](membership::ToCoordinator& said) { falsify(said); };
  process_ = std::make_unique<cluster::MemberProcess>(std::move(options.process), network(), now());
  engine_ = std::make_unique<CountingEngine>(
      CountingEngine::World{.invariants = invariants,
                            .believes = std::move(believes),
                            .after =
                                [this](Duration delay, std::function<void()> action) {
                                  after(delay, [this, action = std::move(action)] {
                                    action();
                                    go_on();
                                  });
                                },
                            .now = [this] { return now(); },
                            .things = options.things,
                            .view_change = options.view_change},
      *process_, seed, options.slowness);
  go_on();
}

SimMember::~SimMember() {
  engine_.reset();
  process_.reset();
  silence();
}

void SimMember::on_network(host::NetworkEvent event) {
  if (process_ == nullptr) return;
  process_->on(std::move(event), now());
  go_on();
}

void SimMember::on_timer() {
  process_->tick(now());
  go_on();
}

void SimMember::wants_to_leave(const std::string& reason) {
  engine_->wants_to_leave(reason, now());
  go_on();
}

void SimMember::leave(const std::string& reason) {
  engine_->leave(reason, now());
  go_on();
}

Incarnation SimMember::turn_hostile() {
  if (member() == nullptr) return {};
  const Incarnation life = member()->self().incarnation;
  say_nonsense(life);
  return life;
}

void SimMember::say_nonsense(Incarnation life) {
  if (member() == nullptr || member()->self().incarnation != life) return;
  const net::PeerId coordinator = member()->coordinator();
  for (const auto& make : {oddity, nonsense})
    (void)links()->send(coordinator, host::Lane::kControl, make(rng_), now());
  go_on();
  after(from_milliseconds(200), [this, life] { say_nonsense(life); });
}

void SimMember::lie(Lies lies, Duration lasts, std::function<void(Incarnation)> tells) {
  if (liar_) return;
  liar_.emplace(lies, rng_.next_u64(), things_);
  tells_of_liar_ = std::move(tells);
  after(lasts, [this] { liar_.reset(); });
  if (lies == Lies::kPretends) say_inventions();
}

void SimMember::falsify(membership::ToCoordinator& said) {
  if (!liar_ || member() == nullptr) return;
  tells_of_liar_(member()->self().incarnation);
  liar_->falsify(said, *member(), engine_->step(), engine_->has_witnesses());
}

void SimMember::say_inventions() {
  if (!liar_) return;
  if (member() != nullptr) {
    const membership::ToCoordinator said = liar_->invent(*member(), engine_->step());
    (void)links()->send(member()->coordinator(), host::Lane::kControl, cluster::pack(said), now());
    go_on();
  }
  after(from_milliseconds(200), [this] { say_inventions(); });
}

void SimMember::tell(const cluster::ProcessEvent& event) const {
  if (const auto* const begun = std::get_if<cluster::LifeBegun>(&event)) {
    trace_(machine(), fmt::format("begins as node {} incarnation {}", begun->self.node.value,
                                  begun->self.incarnation.value));
  } else if (const auto* const ended = std::get_if<cluster::LifeEnded>(&event)) {
    trace_(machine(), fmt::format("ends{}: {}", ended->again ? ", will begin again" : "",
                                  ended->error ? ended->error->message() : "it left"));
  } else if (const auto* const one = std::get_if<cluster::MemberEvent>(&event)) {
    const auto view = [&] { return process_->member()->view().epoch().value; };
    if (const auto* const changed = std::get_if<cluster::ViewChanged>(one)) {
      trace_(machine(),
             fmt::format("has the view of epoch {}{}", view(), changed->freeze ? ", freezes" : ""));
    } else if (std::holds_alternative<cluster::ViewInstalled>(*one)) {
      trace_(machine(), fmt::format("installs epoch {} at step {}", process_->member()->installed().epoch(),
                                    process_->member()->installed().decision()));
    }
  }
}

void SimMember::go_on() {
  for (auto events = process_->take_events(); !events.empty(); events = process_->take_events()) {
    for (const cluster::ProcessEvent& event : events) {
      if (std::holds_alternative<cluster::LifeBegun>(event)) ++lives_;
      if (trace_) tell(event);
      engine_->on(event, now());
    }
  }
  arm(process_->next_wakeup());
}

}  // namespace gossamer::simulation
