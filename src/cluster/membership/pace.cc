// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/pace.h"

#include <algorithm>
#include <vector>

namespace gossamer::cluster {
namespace {

constexpr double kLeast = 1e-15;
constexpr double kMost = 1e24;

double median(const std::deque<Pace>& paces, double Pace::* what) {
  std::vector<double> values;
  for (const Pace& pace : paces) values.push_back(pace.*what);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void PaceMeter::add(const StepWork& step, Instant now) {
  // The first step only begins the period, because nobody knows when that step began.
  if (!began_) {
    began_ = now;
    return;
  }
  ++steps_;
  sum_.work += step.work;
  sum_.took = sum_.took + step.took;
  sum_.cpu = sum_.cpu + step.cpu;
  sum_.process_cpu = sum_.process_cpu + step.process_cpu;
  sum_.all_cpu = sum_.all_cpu + step.all_cpu;
  sum_.whole = sum_.whole + step.whole;
}

std::optional<Pace> PaceMeter::take(Instant now) {
  if (!began_ || now - *began_ < kPeriod || steps_ == 0) return std::nullopt;
  const StepWork sum = sum_;
  const auto steps = static_cast<double>(steps_);
  *this = {};
  began_ = now;
  if (sum.work <= 0 || sum.took.ns <= 0) return std::nullopt;
  Pace pace{.speed = sum.work / sum.took.seconds(), .own_work = 0, .step_s = sum.whole.seconds() / steps};
  if (sum.cpu.ns <= 0 || sum.all_cpu < sum.cpu) return pace;
  pace.speed *= std::max(1.0, sum.process_cpu.seconds() / sum.cpu.seconds());
  pace.own_work = sum.work / steps * (sum.all_cpu - sum.cpu).seconds() / sum.cpu.seconds();
  return pace;
}

void SmoothedPace::add(const Pace& told) {
  const bool in_range = told.speed >= kLeast && told.speed <= kMost;
  if (!in_range || !(told.own_work >= 0 && told.own_work <= kMost)) return;
  if (!(told.step_s >= 0 && told.step_s <= kMost)) return;
  told_.push_back(told);
  if (told_.size() > kWindow) told_.pop_front();
}

std::optional<Pace> SmoothedPace::pace() const {
  if (told_.empty()) return std::nullopt;
  return Pace{.speed = median(told_, &Pace::speed),
              .own_work = median(told_, &Pace::own_work),
              .step_s = median(told_, &Pace::step_s)};
}

void IdleTrial::placed(bool holds, Instant now) {
  if (since_ && holds == holds_) return;
  if (!holds) {
    const bool again = since_ && now - *since_ < pause_;
    pause_ = again ? Duration{2 * pause_.ns} : kFirst;
  }
  holds_ = holds;
  since_ = now;
}

bool IdleTrial::due(Instant now) const { return since_ && !holds_ && now - *since_ >= pause_; }

}  // namespace gossamer::cluster
