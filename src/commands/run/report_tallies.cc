// SPDX-License-Identifier: Apache-2.0
#include "commands/run/report_tallies.h"

#include <algorithm>
#include <iterator>

namespace gossamer::commands {
namespace {

// Steps of which some members have told; the oldest are forgotten. A member that was away for an hour has
// told of fewer.
constexpr std::size_t kMostPartial = 1'000'000;

}  // namespace

void StepTally::add(NodeId from, const engine::MemberStep& step) {
  add_sent(senders_[from], step.sent);
  if (step.step < next_ && !passed_over(step.step)) return;
  Told& told = told_[{step.step, step.epoch}];
  if (told.members == 0) told.members = step.members;
  if (told.members != step.members || step.rank >= step.members) return;
  told.shares[from] = {.rank = step.rank, .loss = step.loss};
  if (told.shares.size() < told.members) return;
  // The sum in the order of ranks is the same for every run of the same steps.
  std::map<std::size_t, double> losses;
  for (const auto& [node, share] : told.shares) losses[share.rank] = share.loss;
  if (losses.size() < told.members) return;
  double sum = 0;
  for (const auto& [rank, loss] : losses) sum += loss;
  told_.erase({step.step, step.epoch});
  if (step.step >= next_) {
    whole_[step.step] = sum;
  } else {
    late_ = std::min(late_.value_or(step.step), step.step);
  }
}

bool StepTally::passed_over(StepNumber step) const {
  const auto behind = gaps_.upper_bound(step);
  return behind != gaps_.begin() && step < std::prev(behind)->second;
}

// A member that was away may tell of its steps when the others have gone on. One that has died never does.
std::vector<StepLoss> StepTally::take(std::optional<StepNumber> limit) {
  std::vector<StepLoss> steps;
  const auto end = limit ? whole_.lower_bound(*limit) : whole_.end();
  const std::map<StepNumber, double> taken(whole_.begin(), end);
  whole_.erase(whole_.begin(), end);
  while (whole_.size() > kMostPartial) whole_.erase(std::prev(whole_.end()));
  for (const auto& [step, loss] : taken) {
    steps.push_back({.step = step, .loss = loss});
    if (next_ < step) gaps_[next_] = step;
    next_ = StepNumber(step.value + 1);
    // Another epoch may have told of it in part.
    told_.erase(told_.lower_bound({step, Epoch()}), told_.lower_bound({next_, Epoch()}));
  }
  while (told_.size() > kMostPartial) told_.erase(told_.begin());
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
  if (recovery.total < Duration()) return;
  const auto told = told_.find(recovery.epoch);
  if (told == told_.end() || recovery.total > told->second.total)
    told_.insert_or_assign(recovery.epoch, std::move(recovery));
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
