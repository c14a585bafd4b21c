// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_coordinator.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace gossamer::simulation {

SimCoordinator::SimCoordinator(host::Timeline& timeline, host::SimInternet& internet,
                               const std::string& machine, const std::string& certificate, ClockError clock,
                               host::SimStoreMedium& medium, cluster::Workload& workload,
                               Invariants& invariants, cluster::CoordinatorProcess::Options options,
                               Trace trace)
    : SimProcess(timeline, internet, machine, certificate, clock),
      medium_(medium),
      invariants_(invariants),
      store_(medium.open()),
      rng_(options.seed, Purpose::kFault, 8),
      trace_(std::move(trace)) {
  const net::PeerAddress address =
      cluster::address_of(cluster::kCoordinatorNode, options.coordinator.listening);
  const auto control = network().listen(address.control, host::Lane::kControl);
  const auto bulk = network().listen(address.bulk, host::Lane::kBulk);
  CHECK(control.ok() && bulk.ok());
  options.keep_every = store_->keep_every();
  options.lead_time = store_->lead_time();
  process_ = std::make_unique<cluster::CoordinatorProcess>(std::move(options), network(), workload, now());
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
  go_on();
}

void SimCoordinator::go_on() {
  if (auto next = process_->next_call(now())) call(std::move(*next));
  cluster::Coordinator* const coordinator = process_->coordinator();
  if (trace_ && led_ != (coordinator != nullptr)) {
    led_ = coordinator != nullptr;
    trace_(machine(),
           led_ ? fmt::format("leads, generation {}", process_->generation().value) : "leads no more");
  }
  if (coordinator != nullptr) {
    for (const cluster::RunEvent& event : coordinator->take_events()) {
      if (!trace_) continue;
      trace_(machine(),
             fmt::format("{} node {} incarnation {} in epoch {}: {}", event.kind, event.peer.node.value,
                         event.peer.incarnation.value, event.epoch.value, event.text));
    }
  }
  arm(process_->next_wakeup());
}

// The call reaches the store after a while, and its answer takes another.
void SimCoordinator::call(cluster::StoreCall call) {
  // A disk hiccups now and then.
  const auto while_ = [this] {
    const double most_ms = rng_.below(20) == 0 ? 600 : 8;
    return from_milliseconds(0.2 + most_ms * static_cast<double>(rng_.uniform()));
  };
  after(while_(), [this, while_, call = std::move(call)] {
    if (timeline().now() < away_until_) {
      store_->restart_count({.fail_at_operation = 0});
    } else if (failing_ > 0 && --skipped_ < 0) {
      host::SimStoreFaults faults;
      // Whether it was carried out, its caller cannot know.
      (failing_ % 2 == 1 ? faults.lose_answer_at_operation : faults.fail_at_operation) = 0;
      store_->restart_count(faults);
      --failing_;
    } else {
      store_->restart_count({});
    }
    cluster::StoreAnswer answer = cluster::carry_out(*store_, call);
    const auto* const done = std::get_if<Result<void>>(&answer);
    if (std::holds_alternative<cluster::Commit>(call) && done != nullptr && done->ok())
      invariants_.wrote(process_->generation(), medium_.generation());
    after(while_(), [this, answer = std::move(answer)] {
      process_->answered(answer, now());
      go_on();
    });
  });
}

}  // namespace gossamer::simulation
