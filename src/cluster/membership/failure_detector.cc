// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/failure_detector.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace gossamer::cluster {
namespace {

constexpr double kSuspectChance = 1e-3;
// A day has 864,000 beats: a tenth of a false death a day, if the tail is what we believe.
constexpr double kDeadChance = 1e-7;

// Old beats fade by this factor at each new one, so the sums stand for about the last 1,000 beats.
constexpr double kFade = 1 - 1e-3;
// The sums before anything was heard: ten beats at 100 ms.
constexpr double kFirstBeats = 10;
constexpr double kFirstInterval = 0.1;
// The prior of the tail never fades, because one good hour says nothing about the next loss. It has three
// late beats, so that a single stall does not make the detector slow for minutes.
constexpr double kPriorBeats = 300;
constexpr double kPriorLate = 3;
// As large as the promise of failure_detector.h allows: death within 2 s of silence at ten beats a second.
constexpr double kLeastScale = 0.14;

// A busy caller is never as late as this. Suspicion and death lie farther apart, by at least kLeastScale *
// ln(10^4) = 1.3 s. So no pause that goes unnoticed here can kill a peer that was alive.
constexpr Duration kOwnPause = {500'000'000};

}  // namespace

FailureDetector::FailureDetector(Instant now)
    : beats_(kFirstBeats), total_(kFirstBeats * kFirstInterval), since_(now) {
  set_limits();
}

void FailureDetector::heard(Instant now) {
  CHECK(now >= since_, now.ns, since_.ns);
  if (said_ == Verdict::kDead) return;
  excuse_own_pause(now);
  learn((now - since_).seconds());
  since_ = now;
  closed_.reset();
  excused_ = false;
  said_ = Verdict::kAlive;
}

void FailureDetector::closed(Instant now, Duration confirm) {
  if (said_ == Verdict::kDead) return;
  excuse_own_pause(now);
  said_ = Verdict::kSuspected;
  const bool answers_us = excused_ || (resumed_ && now < *resumed_ + kMostConfirm);
  if (!answers_us && !closed_) closed_ = now + confirm;
}

Duration FailureDetector::confirm_after(std::optional<Duration> round_trip, Duration beat_every) {
  constexpr Duration kMargin{50'000'000};
  if (!round_trip) return kConfirm;
  return std::clamp(Duration{6 * round_trip->ns} + beat_every + kMargin, kConfirm, kMostConfirm);
}

void FailureDetector::resumed(Instant now) {
  CHECK(now >= since_, now.ns, since_.ns);
  since_ = now;
  closed_.reset();
  excused_ = true;
  resumed_ = now;
}

Verdict FailureDetector::verdict(Instant now) {
  if (said_ == Verdict::kDead) return said_;
  excuse_own_pause(now);
  if (now >= death()) {
    said_ = Verdict::kDead;
  } else if (now >= since_ + suspect_after_) {
    said_ = Verdict::kSuspected;
  }
  return said_;
}

std::optional<Instant> FailureDetector::next_wakeup() const {
  switch (said_) {
    case Verdict::kAlive: return since_ + suspect_after_;
    case Verdict::kSuspected: return death();
    case Verdict::kDead: break;
  }
  return std::nullopt;
}

Instant FailureDetector::death() const {
  // Without a stream no beat can come. So its end alone counts, however long another stream takes.
  return closed_.value_or(since_ + dead_after_);
}

void FailureDetector::excuse_own_pause(Instant now) {
  const std::optional<Instant> wakeup = next_wakeup();
  if (!excused_ && wakeup && now > *wakeup + kOwnPause) resumed(now);
}

void FailureDetector::learn(double interval) {
  const double bound = 2 * total_ / beats_;
  beats_ = beats_ * kFade + 1;
  total_ = total_ * kFade + interval;
  late_ = late_ * kFade + (interval > bound ? 1 : 0);
  excess_ = excess_ * kFade + std::max(interval - bound, 0.0);
  set_limits();
}

void FailureDetector::set_limits() {
  const double mean = total_ / beats_;
  const double least_scale = std::max(mean, kLeastScale);
  const double late = late_ + kPriorLate;
  const double scale = std::max(least_scale, (excess_ + kPriorLate * least_scale) / late);
  const double log_share = std::log(late / (beats_ + kPriorBeats));
  suspect_after_ = from_seconds(2 * mean + scale * (log_share - std::log(kSuspectChance)));
  dead_after_ = from_seconds(2 * mean + scale * (log_share - std::log(kDeadChance)));
}

}  // namespace gossamer::cluster
