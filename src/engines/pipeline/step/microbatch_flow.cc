// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/step/microbatch_flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::pipeline {

MicrobatchFlow::MicrobatchFlow(const Options& options)
    : options_(options), credits_(options.receivers), seen_(options.microbatches) {
  CHECK(options.own == 0 || is_first());
  CHECK(options.first_own + options.own <= options.microbatches, options.first_own, options.own);
  CHECK(options.credits.room >= 1);
  if (!is_first()) granted_.emplace(options.senders, options.credits);
}

void MicrobatchFlow::begin_own() {
  if (own_left() == 0 || waits_ || !forward_.empty() || held_.size() >= options_.credits.room) return;
  const std::uint64_t microbatch = options_.first_own + own_begun_++;
  seen_[microbatch] = true;
  held_[microbatch] = {};
  forward_.push_back(microbatch);
}

std::optional<MicrobatchFlow::Job> MicrobatchFlow::next(bool is_short) {
  if (is_short && !products_.empty()) return Job{.kind = Kind::kProducts, .microbatch = products_.front()};
  if (!backward_.empty()) return Job{.kind = Kind::kBackward, .microbatch = backward_.front()};
  begin_own();
  if (!waits_ && !forward_.empty()) return Job{.kind = Kind::kForward, .microbatch = forward_.front()};
  if (!products_.empty()) return Job{.kind = Kind::kProducts, .microbatch = products_.front()};
  return std::nullopt;
}

void MicrobatchFlow::drop(std::deque<std::uint64_t>& queue, std::uint64_t microbatch) {
  const auto found = std::ranges::find(queue, microbatch);
  CHECK(found != queue.end(), microbatch);
  queue.erase(found);
}

void MicrobatchFlow::done(const Job& job) {
  Held& one = held_.at(job.microbatch);
  switch (job.kind) {
    case Kind::kForward:
      drop(forward_, job.microbatch);
      if (is_last()) {
        one.phase = Phase::kBackward;
        backward_.push_back(job.microbatch);
      } else {
        one.phase = Phase::kWaits;
        waits_ = job.microbatch;
      }
      return;
    case Kind::kBackward:
      drop(backward_, job.microbatch);
      one.phase = Phase::kProducts;
      products_.push_back(job.microbatch);
      if (one.from) gradients_.push_back({.to = *one.from, .microbatch = job.microbatch});
      return;
    case Kind::kProducts:
      drop(products_, job.microbatch);
      held_.erase(job.microbatch);
      return;
  }
}

std::optional<MicrobatchFlow::Sending> MicrobatchFlow::next_forward() {
  if (!waits_) return std::nullopt;
  const std::optional<NodeId> to = credits_.use();
  if (!to) return std::nullopt;
  const std::uint64_t microbatch = *std::exchange(waits_, std::nullopt);
  Held& one = held_.at(microbatch);
  one.phase = Phase::kAway;
  one.to = to;
  return Sending{.to = *to, .microbatch = microbatch};
}

std::optional<MicrobatchFlow::Sending> MicrobatchFlow::next_backward() {
  if (gradients_.empty()) return std::nullopt;
  const Sending sending = gradients_.front();
  gradients_.pop_front();
  return sending;
}

std::vector<GrantedCredits::Grant> MicrobatchFlow::grants() {
  if (!granted_) return {};
  return granted_->grant(held_.size());
}

std::string_view MicrobatchFlow::forward_came(NodeId from, std::uint64_t microbatch) {
  if (is_first() || std::ranges::find(options_.senders, from) == options_.senders.end())
    return "a boundary from a member that is not of the stage before";
  if (microbatch >= seen_.size()) return "a boundary of a microbatch that the step does not have";
  if (seen_[microbatch]) return "a boundary of a microbatch that has come before";
  if (!granted_->take(from)) return "a boundary without a credit";
  seen_[microbatch] = true;
  held_[microbatch] = {.from = from};
  forward_.push_back(microbatch);
  return {};
}

std::string_view MicrobatchFlow::backward_came(NodeId from, std::uint64_t microbatch) {
  const auto found = held_.find(microbatch);
  if (found == held_.end() || found->second.to != from || found->second.phase != Phase::kAway)
    return "a gradient of a microbatch that was not sent to its sender, or a second one";
  found->second.phase = Phase::kBackward;
  backward_.push_back(microbatch);
  return {};
}

std::string_view MicrobatchFlow::credit_came(NodeId from, std::uint64_t total) {
  if (!credits_.granted(from, total)) return "a credit that is too low, too high, or of no receiver";
  return {};
}

std::map<NodeId, std::uint64_t> MicrobatchFlow::awaited() const {
  std::map<NodeId, std::uint64_t> awaited;
  for (const auto& [microbatch, one] : held_) {
    if (one.phase == Phase::kAway) ++awaited[*one.to];
  }
  return awaited;
}

}  // namespace gossamer::pipeline
