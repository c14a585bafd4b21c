// SPDX-License-Identifier: Apache-2.0
#include "engines/run/member_engine.h"

#include <utility>
#include <variant>

#include "cluster/control/view.h"

namespace gossamer::engine {

// A batch may end a life after other events. These are told when there is no member any more, and are
// dropped.
void MemberEngine::on(const cluster::ProcessEvent& event, Instant now) {
  const bool hears = process_.member() != nullptr && !failure_;
  if (hears || std::holds_alternative<cluster::LifeEnded>(event) ||
      std::holds_alternative<cluster::LifeBegun>(event))
    std::visit([&](const auto& one) { on_one(one, now); }, event);
}

void MemberEngine::on_one(const cluster::LifeBegun& event, Instant now) {
  alive_ = false;
  end();
  if (process_.member() == nullptr) return;
  if (failure_) return member().leave(failure_->message(), now);
  if (leaving_) return member().leave(*leaving_, now);
  alive_ = true;
  begin(event, now);
}

void MemberEngine::on_one(const cluster::LifeEnded&, Instant) {
  alive_ = false;
  end();
}

void MemberEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const asked = std::get_if<cluster::StopRequested>(&event)) return stop(asked->reason, now);
  if (!alive_) return;
  const auto* const view = std::get_if<cluster::ViewChanged>(&event);
  if (view != nullptr && view->freeze) return view->can_wait ? freeze_after_step(now) : freeze(now);
  if (std::holds_alternative<cluster::ViewInstalled>(event)) return install(now);
  if (const auto* const gone = std::get_if<cluster::PeerLost>(&event)) lost(gone->peer, now);
}

void MemberEngine::on_one(const net::Arrived& event, Instant now) {
  process_.links()->consumed(event.receipt, now);
  if (!alive_ || member().view().fenced().contains(event.from.incarnation)) return;
  arrived(event, now);
}

void MemberEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

void MemberEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (process_.member() != nullptr) give_up(failure_->message(), now);
}

}  // namespace gossamer::engine
