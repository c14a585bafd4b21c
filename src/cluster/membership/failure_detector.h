// SPDX-License-Identifier: Apache-2.0
//
// FailureDetector: is this peer still there? One object for one life of one peer. It learns from the
// intervals between the peer's beats how long a silence must be to mean something, so there is nothing to
// tune.
//
// The verdict follows from the chance that a living peer is silent for so long. (Accrual: Hayashibara et al.,
// "The phi accrual failure detector", SRDS 2004.) The paper's normal distribution is replaced. Over bad links
// intervals have a bound below, as nothing comes before it was sent. They have a heavy tail above: a lost
// packet costs TCP 200 ms and more, and the next loss twice that. So:
//
//   chance(silence > t) = 1                            for t <= 2 m,
//                         share * exp(-(t - 2 m) / s)  beyond.
//
// m: the mean interval. share: the part of the beats that come later than 2 m. s: by how much they are later,
// on average. share and s are estimated from about the last thousand beats, on top of a prior of 3 late ones
// in 300. s is never taken below max(m, 140 ms), because a link without a spike so far may still have one.
//
// A peer is suspected where the chance is below 10^-3, and dead below 10^-7. At ten beats a second over a
// good link, this is after 0.3..0.5 and 1.6..1.8 s.
//
// A stream that closes is suspicion at once, and death 0.25 s later unless the peer is heard again before.
// (Over long ways the caller says how long another stream takes, which may be longer than any silence.) With
// 50 ms for the news and for the caller, a killed process is dead within 0.3 s.
//
// Our own pauses are not the peer's silence. A call that comes more than half a second after next_wakeup()
// shows that this process stood still. The silence then counts from that call. This excuse is given once in a
// silence, so that a caller that is always late still finds the dead. A stream that closes may be the peer's
// answer to our silence. So for kMostConfirm after a pause it shortens nothing, nor before the peer is heard
// again. What is heard at first may have been sent long before.
//
// The caller passes `now` from one monotonic clock, never falling, and asks verdict() at next_wakeup().
// Without input the verdict only gets worse. kDead is final: what comes later is another life.
//
// Cost: 80 bytes a peer; a beat costs one logarithm. Thread rule: one owner.
#pragma once

#include <optional>

#include "base/time.h"

namespace gossamer::cluster {

enum class Verdict {
  kAlive,
  kSuspected,  // give it no new work; fence nothing
  kDead,       // fence it
};

class FailureDetector {
 public:
  // The peer counts as heard at `now`, when it joined.
  explicit FailureDetector(Instant now);

  // A beat, or any other message of the peer, arrived. Withdraws every suspicion.
  void heard(Instant now);
  // One of the peer's streams closed. It counts as dead unless it is heard within `confirm`, which must
  // suffice to open another.
  static constexpr Duration kConfirm{250'000'000};
  void closed(Instant now, Duration confirm = kConfirm);
  // An attempt to connect that takes longer has failed.
  static constexpr Duration kMostConfirm{5'000'000'000};
  // What suffices to open another stream: TCP, TLS, HTTP/2 and Hello take five round trips, then a beat
  // comes. `round_trip`: the last that was measured, perhaps over a pause of either process; nothing: none
  // was.
  [[nodiscard]] static Duration confirm_after(std::optional<Duration> round_trip, Duration beat_every);
  // The caller knows that this process stood still until `now`. Other pauses are found as described above.
  void resumed(Instant now);

  // Until when this process last stood still, as was found or told.
  [[nodiscard]] std::optional<Instant> last_pause() const { return resumed_; }

  [[nodiscard]] Verdict verdict(Instant now);
  // When verdict() will next change if nothing happens; none once it was kDead.
  [[nodiscard]] std::optional<Instant> next_wakeup() const;

 private:
  void excuse_own_pause(Instant now);
  void learn(double interval);
  void set_limits();
  [[nodiscard]] Instant death() const;

  // Sums over beats, each weighted less the older it is; times in seconds.
  double beats_;
  double total_;
  double late_ = 0;
  double excess_ = 0;  // by how many seconds the late ones were beyond 2 m

  Duration suspect_after_;
  Duration dead_after_;
  Instant since_;                                  // the silence counts from here
  std::optional<Instant> closed_ = std::nullopt;   // death by a stream closed since the last beat
  bool excused_ = false;                           // we stood still since the last beat
  std::optional<Instant> resumed_ = std::nullopt;  // when we last stood still until
  Verdict said_ = Verdict::kAlive;
};

}  // namespace gossamer::cluster
