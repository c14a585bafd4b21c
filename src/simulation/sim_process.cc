// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_process.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gossamer::simulation {

SimProcess::SimProcess(host::Timeline& timeline, host::SimInternet& internet, std::string name,
                       std::string where, const std::string& certificate, ClockError clock)
    : timeline_(timeline),
      internet_(internet),
      machine_(std::move(name)),
      where_(std::move(where)),
      clock_(clock) {
  network_ = internet.attach(where_, {certificate}, [this](host::NetworkEvent event) {
    if (!paused_) return on_network(std::move(event));
    held_.push_back([this, event = std::move(event)] { on_network(event); });
  });
}

SimProcess::~SimProcess() {
  *alive_ = false;
  if (paused_ && has_own_machine()) internet_.resume(machine_);
}

Instant SimProcess::now() const {
  const double elapsed = static_cast<double>(timeline_.now().ns) * clock_.rate;
  return {clock_.offset.ns + static_cast<std::int64_t>(elapsed)};
}

Instant SimProcess::global(Instant local) const {
  const double elapsed = static_cast<double>(local.ns - clock_.offset.ns) / clock_.rate;
  // A nanosecond late rather than early, because nothing would be due at an early call.
  return {static_cast<std::int64_t>(std::ceil(elapsed)) + 1};
}

void SimProcess::pause() {
  paused_ = true;
  if (has_own_machine()) internet_.pause(machine_);
}

void SimProcess::resume() {
  paused_ = false;
  on_resumed();
  if (has_own_machine()) internet_.resume(machine_);
  for (const auto& action : std::exchange(held_, {})) action();
}

void SimProcess::run(std::function<void()> action) {
  if (paused_) {
    held_.push_back(std::move(action));
  } else {
    action();
  }
}

void SimProcess::after(Duration delay, std::function<void()> action) {
  timeline_.after(delay, [this, alive = alive_, action = std::move(action)] {
    if (*alive) run(action);
  });
}

void SimProcess::arm(std::optional<Instant> local) {
  if (!local) {
    armed_.reset();
    return;
  }
  const Instant when = std::max(global(*local), timeline_.now());
  if (armed_ == when) return;
  armed_ = when;
  timeline_.at(when, [this, alive = alive_, when] {
    if (!*alive || armed_ != when) return;
    run([this, when] {
      if (armed_ != when) return;
      armed_.reset();
      on_timer();
    });
  });
}

}  // namespace gossamer::simulation
