// SPDX-License-Identifier: Apache-2.0
#include "engines/run/recovery_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace gossamer::engine {

std::optional<FleetRecovery> RecoveryWatch::stepped(StepNumber step, Instant now) {
  const std::optional<Instant> before = std::exchange(last_step_, now);
  const std::vector<std::string> causes = std::exchange(causes_, {});
  FleetRecovery cost = std::exchange(cost_, {});
  // If a step was under way when the view began to change, nothing goes on from here.
  const bool resting = recovering_ && phase_ == Phase::kAgree;
  const bool recovered = std::exchange(recovering_, resting);
  phase_ = resting ? Phase::kAgree : Phase::kStep;
  phase_began_ = now;
  if (!before) return std::nullopt;
  if (!recovered) {
    steps_.push_back(now - *before);
    if (steps_.size() > kSteps) steps_.pop_front();
  }
  if (causes.empty()) return std::nullopt;
  cost.step = step;
  cost.cause = fmt::format("{}", fmt::join(causes, ", "));
  cost.total = std::max(Duration{}, now - *before - median_step());
  return cost;
}

void RecoveryWatch::frozen(Instant now) {
  if (!recovering_) {
    recovering_ = true;
    phase_ = Phase::kDetect;
    phase_began_ = last_step_.value_or(now);
  }
  enter(Phase::kAgree, now);
}

void RecoveryWatch::installed(const Change& change, const std::map<NodeId, Known>& known, Instant now) {
  recovering_ = true;  // a new member's first change counts, too
  cost_.epoch = change.epoch;
  for (const auto& [node, one] : known) names_[node] = printable(one.name);
  if (change.changes && !holds_.empty()) add_causes(change, known);
  holds_.clear();
  for (const auto& [node, holder] : change.members) holds_[node] = holder.after;
  cost_.steps_replayed = std::max(cost_.steps_replayed, change.steps_replayed);
  enter(Phase::kLoad, now);
}

// Adds the changes since the last one: members that are gone, that have come, or that give all away to leave.
void RecoveryWatch::add_causes(const Change& change, const std::map<NodeId, Known>& known) {
  const auto name = [this](NodeId node) {
    const std::string& given = names_[node];
    return given.empty() ? fmt::format("node {}", node.value) : given;
  };
  for (const auto& [node, held] : holds_) {
    if (held && !change.members.contains(node)) add_cause(name(node) + " was lost");
  }
  for (const auto& [node, holder] : change.members) {
    const auto one = known.find(node);
    const bool drains = one != known.end() && one->second.drains;
    if (!holds_.contains(node) && holder.after) add_cause(name(node) + " joined");
    if (drains && holder.before) add_cause(name(node) + " left");
  }
  if (causes_.empty()) add_cause("parts were dealt anew");
}

void RecoveryWatch::add_cause(std::string cause) {
  if (std::ranges::find(causes_, cause) == causes_.end()) causes_.push_back(std::move(cause));
}

void RecoveryWatch::enter(Phase phase, Instant now) {
  const Duration passed = now - std::exchange(phase_began_, now);
  switch (std::exchange(phase_, phase)) {
    case Phase::kStep: return;
    case Phase::kDetect: cost_.detect = cost_.detect + passed; return;
    case Phase::kAgree: cost_.agree = cost_.agree + passed; return;
    case Phase::kLoad: cost_.load = cost_.load + passed; return;
    case Phase::kReplay: cost_.replay = cost_.replay + passed; return;
  }
}

Duration RecoveryWatch::median_step() const {
  if (steps_.empty()) return {};
  std::vector<Duration> sorted(steps_.begin(), steps_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

std::map<NodeId, RecoveryWatch::Known> known_members(const cluster::View& view) {
  std::map<NodeId, RecoveryWatch::Known> known;
  for (const auto& [node, record] : view.members())
    known[node] = {.name = record.name(), .drains = record.state() == membership::DRAINING};
  return known;
}

}  // namespace gossamer::engine
