// SPDX-License-Identifier: Apache-2.0
#include "node/accompanied.h"

#include <utility>

namespace gossamer::node {

Accompanied::Accompanied(EventLoop& loop, cluster::CoordinatorProcess& process, const MakeCompanion& make)
    : loop_(loop),
      process_(process),
      companion_(
          make([this](std::function<void()> work,
                      std::function<void(Instant)> then) { aside_.give(std::move(work), std::move(then)); },
               [this](std::function<void()> action) { loop_.post({}, std::move(action)); })),
      aside_(loop) {}

void Accompanied::connect() {
  const std::optional<Generation> leads =
      process_.links() != nullptr ? std::optional(process_.generation()) : std::nullopt;
  if (leads == lead_) return;
  lead_ = leads;
  placed_ = Epoch();
  stopped_ = false;  // the lead before may not have written that the run ends
  companion_->connect(process_.links());
  companion_->read_books(process_.coordinator());
}

void Accompanied::tell_placement() {
  const cluster::Coordinator* const coordinator = process_.coordinator();
  if (coordinator == nullptr || coordinator->installed() == placed_) return;
  placed_ = coordinator->installed();
  companion_->placed(placed_, coordinator->decision());
}

void Accompanied::on(net::Arrived arrived) {
  connect();
  tell_placement();
  companion_->on(std::move(arrived), loop_.now());
  blame();
}

void Accompanied::blame() {
  for (const Misdeed& one : companion_->take_misdeeds()) {
    if (process_.coordinator() != nullptr) process_.coordinator()->blame(one.peer, one.error, loop_.now());
  }
}

std::optional<Instant> Accompanied::tick() {
  connect();
  companion_->tick(loop_.now());
  blame();
  const auto over = companion_->over();
  if (over && !stopped_ && process_.coordinator() != nullptr) {
    stopped_ = true;
    process_.coordinator()->stop(*over, loop_.now());
  }
  return companion_->next_wakeup();
}

}  // namespace gossamer::node
