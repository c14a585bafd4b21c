// SPDX-License-Identifier: Apache-2.0
#include "commands/run/report_tallies.h"

namespace gossamer::commands {

void StepTally::add(NodeId from, const engine::MemberStep& step) {
  add_sent(senders_[from], step.sent);
  if (step.step < next_) return;
  Told& told = told_[{step.step, step.epoch}];
  told.members = step.members;
  told.loss[step.rank] = step.loss;
  if (told.loss.size() < told.members) return;
  double sum = 0;
  for (const auto& [rank, share] : told.loss) sum += share;
  whole_[step.step] = sum;
  told_.erase({step.step, step.epoch});
}

// A step that is not whole now has died with a member.
std::vector<StepLoss> StepTally::take() {
  std::vector<StepLoss> steps;
  for (const auto& [step, loss] : std::exchange(whole_, {})) {
    steps.push_back({.step = step, .loss = loss});
    next_ = StepNumber(step.value + 1);
  }
  std::erase_if(told_, [this](const auto& one) { return one.first.first < next_; });
  return steps;
}

// A new life counts from the beginning.
void StepTally::add_sent(Sender& sender, const engine::SentBytes& sent) {
  ++sender.steps;
  if (sent.steps < sender.life.steps || sent.background < sender.life.background) {
    sender.before.steps += sender.life.steps;
    sender.before.background += sender.life.background;
  }
  sender.life = sent;
}

StepTally::BytesOfStep StepTally::bytes_of_step() const {
  BytesOfStep sum;
  double steps = 0;
  for (const auto& [node, sender] : senders_) {
    sum.steps += static_cast<double>(sender.before.steps + sender.life.steps);
    sum.background += static_cast<double>(sender.before.background + sender.life.background);
    steps += static_cast<double>(sender.steps);
  }
  if (steps == 0) return {};
  return {.steps = sum.steps / steps, .background = sum.background / steps};
}

void RecoveryTally::add(engine::FleetRecovery recovery) {
  if (given_.contains(recovery.epoch)) return;
  engine::FleetRecovery& told = told_[recovery.epoch];
  if (recovery.total >= told.total) told = std::move(recovery);
}

std::vector<engine::FleetRecovery> RecoveryTally::take(StepNumber before) {
  std::vector<engine::FleetRecovery> ended;
  for (auto one = told_.begin(); one != told_.end();) {
    if (one->second.step >= before) {
      ++one;
      continue;
    }
    given_.insert(one->first);
    ended.push_back(std::move(one->second));
    one = told_.erase(one);
  }
  return ended;
}

}  // namespace gossamer::commands
