// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/failure_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::cluster {
namespace {

constexpr Instant kStart = {1'000'000'000'000};
constexpr Duration kBeat = from_milliseconds(100);
constexpr Duration kBefore = {-1};

double uniform(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

// Asks at every wakeup before `until`, as a caller does. Returns when the peer was called dead, if it was.
std::optional<Instant> dies_before(FailureDetector& detector, Instant until) {
  while (const std::optional<Instant> wakeup = detector.next_wakeup()) {
    if (*wakeup >= until) return std::nullopt;
    if (detector.verdict(*wakeup) == Verdict::kDead) return wakeup;
  }
  CHECK(false);
  return std::nullopt;
}

// How long the peer may stay silent from now on.
Duration silence_until_dead(FailureDetector detector, Instant last_heard) {
  const std::optional<Instant> death = dies_before(detector, last_heard + from_seconds(1e6));
  CHECK(death.has_value());
  return *death - last_heard;
}

// When the beats of a peer arrive. They are sent every `beat`, `jitter` (a fraction of the beat) later or
// earlier. The stream keeps order and loses a packet with chance `loss`. The first retransmission takes from
// `least_retry` to `most_retry`, and each further one of the same packet twice as long. Times in seconds.
struct Link {
  double beat = 0.1;
  double jitter = 0;
  double one_way = 0;
  double loss = 0;
  double least_retry = 0.2;
  double most_retry = 0.8;
  Rng rng;
  double sent = 0;
  double arrived = 0;

  Instant next() {
    sent += beat;
    double delay = one_way + uniform(rng, -jitter, jitter) * beat;
    for (double retry = uniform(rng, least_retry, most_retry); rng.uniform() < loss; retry *= 2)
      delay += retry;
    arrived = std::max(arrived, sent + delay);
    return kStart + from_seconds(arrived);
  }
};

// Hears `beats` beats and returns when the last one came. The peer must not be called dead.
Instant hear(FailureDetector& detector, Link& link, int beats) {
  Instant last = kStart;
  for (int i = 0; i < beats; ++i) {
    last = link.next();
    EXPECT_FALSE(dies_before(detector, last)) << "beat " << i;
    detector.heard(last);
    EXPECT_EQ(detector.verdict(last), Verdict::kAlive);
  }
  return last;
}

// Silence at ten beats a second is suspicion within 0.6 s, and death within 2 s but never within 1 s. This
// holds with and without 30 % jitter, from the first beat on and after any number of them.
TEST(FailureDetector, SilenceOverAGoodLinkIsDeathWithinTwoSeconds) {
  for (const double jitter : {0.0, 0.3}) {
    for (const int beats : {0, 1, 2, 10, 100, 1000, 10'000}) {
      FailureDetector detector(kStart);
      Link link{.jitter = jitter, .one_way = 0.01, .rng = Rng(7, Purpose::kTest)};
      const Instant last = hear(detector, link, beats);
      const Duration silence = silence_until_dead(detector, last);
      EXPECT_LE(silence, from_seconds(1.9)) << jitter << " " << beats;
      EXPECT_GE(silence, from_seconds(1.0)) << jitter << " " << beats;
      const Duration suspicion = *detector.next_wakeup() - last;
      EXPECT_LE(suspicion, from_seconds(0.6)) << jitter << " " << beats;
      EXPECT_GE(suspicion, from_seconds(0.25)) << jitter << " " << beats;
    }
  }
}

// A closed stream is suspicion at once and death within 0.3 s, even if a second stream closes in between.
TEST(FailureDetector, AKilledPeerIsDeadWithinThreeTenths) {
  FailureDetector detector(kStart);
  Link link{.rng = Rng(1, Purpose::kTest)};
  const Instant killed = hear(detector, link, 50) + from_milliseconds(30);
  EXPECT_EQ(detector.verdict(killed), Verdict::kAlive);
  detector.closed(killed);
  EXPECT_EQ(detector.verdict(killed), Verdict::kSuspected);
  detector.closed(killed + from_milliseconds(200));
  const std::optional<Instant> death = dies_before(detector, killed + from_seconds(10));
  ASSERT_TRUE(death.has_value());
  EXPECT_GT(*death, killed + from_milliseconds(200));
  EXPECT_LE(*death, killed + from_milliseconds(300));
}

// A closed stream is forgiven if the peer is heard before its death is due. The peer then lives as long
// again.
TEST(FailureDetector, ABeatWithdrawsAClosedStream) {
  for (int ms = 0; ms < 250; ++ms) {
    FailureDetector detector(kStart);
    Link link{.rng = Rng(1, Purpose::kTest)};
    const Instant closed = hear(detector, link, 50);
    detector.closed(closed);
    const Instant heard = closed + from_milliseconds(ms);
    ASSERT_FALSE(dies_before(detector, heard)) << ms;
    detector.heard(heard);
    EXPECT_EQ(detector.verdict(heard), Verdict::kAlive);
    EXPECT_GT(silence_until_dead(detector, heard), from_seconds(1)) << ms;
  }
}

// Over a long way another stream takes longer than any silence may last. The peer has all of that time, and
// no more.
TEST(FailureDetector, ALongWayNeedsALongTime) {
  for (const double confirm : {0.25, 1.0, 2.55, 6.15}) {
    FailureDetector detector(kStart);
    Link link{.rng = Rng(1, Purpose::kTest)};
    const Instant closed = hear(detector, link, 300);
    detector.closed(closed, from_seconds(confirm));
    EXPECT_FALSE(dies_before(detector, closed + from_seconds(confirm) + kBefore)) << confirm;
    EXPECT_EQ(detector.verdict(closed + from_seconds(confirm)), Verdict::kDead) << confirm;
  }
}

// The time to open another stream grows with the round trip. A round trip that was measured over a pause of a
// minute does not keep a dead peer for six.
TEST(FailureDetector, TimeForAnotherStream) {
  const auto after = [](double round_trip) {
    return FailureDetector::confirm_after(from_seconds(round_trip), from_milliseconds(100)).seconds();
  };
  EXPECT_EQ(FailureDetector::confirm_after({}, from_milliseconds(100)), FailureDetector::kConfirm);
  EXPECT_NEAR(after(0), 0.25, 1e-9);
  EXPECT_NEAR(after(0.1), 0.75, 1e-9);
  EXPECT_NEAR(after(0.47), 2.97, 1e-9);
  for (const double paused : {1.0, 10.0, 60.0}) EXPECT_NEAR(after(paused), 5, 1e-9) << paused;
}

struct DaysOnABadLink {
  double false_deaths = 0;        // a day
  double longer_than_good = 0;    // gaps a day that would be death over a good link
  double silence_until_dead = 0;  // seconds, mean
};

DaysOnABadLink live_on(Link link, int days) {
  FailureDetector detector(kStart);
  const Duration good = silence_until_dead(detector, kStart);
  DaysOnABadLink seen;
  Instant last = kStart;
  const int beats = static_cast<int>(days * 86'400 / link.beat);
  for (int i = 0; i < beats; ++i) {
    const Instant next = link.next();
    if (next - last > good) seen.longer_than_good += 1.0 / days;
    if (dies_before(detector, next)) {
      seen.false_deaths += 1.0 / days;
      detector = FailureDetector(next);
    }
    detector.heard(next);
    last = next;
    if (i % 1000 == 0) {
      seen.silence_until_dead += silence_until_dead(detector, last).seconds() * 1000 / beats;
    }
  }
  return seen;
}

// One percent of loss kills a living peer less than once a day. This holds with the retransmissions of Linux
// (200 ms and the round trip) at 0, 100 and 200 ms, and with any of 200..800 ms. A good link's limit would
// kill the peer several times a day. The price is that silence is noticed later.
TEST(FailureDetector, LossKillsLessThanOnceADay) {
  constexpr int kDays = 5;
  struct Case {
    double round_trip;
    double least_retry;
    double most_retry;
  };
  double worst_gaps = 0;
  for (const Case& each :
       {Case{0, 0.2, 0.2}, Case{0.1, 0.3, 0.3}, Case{0.2, 0.4, 0.4}, Case{0.2, 0.2, 0.8}}) {
    const DaysOnABadLink seen = live_on({.jitter = 0.1,
                                         .one_way = each.round_trip / 2,
                                         .loss = 0.01,
                                         .least_retry = each.least_retry,
                                         .most_retry = each.most_retry,
                                         .rng = Rng(11, Purpose::kTest)},
                                        kDays);
    GTEST_LOG_(INFO) << "round trip " << each.round_trip << " s, retransmission after " << each.least_retry
                     << ".." << each.most_retry << " s: " << seen.false_deaths << " false deaths a day, "
                     << seen.longer_than_good
                     << " gaps a day beyond a good link's limit, silence noticed after "
                     << seen.silence_until_dead << " s on average";
    EXPECT_LT(seen.false_deaths, 1) << each.round_trip;
    EXPECT_LT(seen.silence_until_dead, 10) << each.round_trip;
    worst_gaps = std::max(worst_gaps, seen.longer_than_good);
  }
  EXPECT_GT(worst_gaps, 5);
}

// A peer that becomes ten times slower is never called dead, and not even suspected once that is learnt. Its
// death is still noticed. When it is fast again, so is the detector.
TEST(FailureDetector, ASlowedPeerIsLearnt) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    FailureDetector detector(kStart);
    Link link{.jitter = 0.3, .rng = Rng(seed, Purpose::kTest)};
    hear(detector, link, 600);
    link.beat = 1;
    hear(detector, link, 100);
    for (int i = 0; i < 1000; ++i) {
      const Instant next = link.next();
      ASSERT_EQ(detector.verdict(next + kBefore), Verdict::kAlive) << i;
      detector.heard(next);
    }
    EXPECT_LT(silence_until_dead(detector, kStart + from_seconds(link.arrived)), from_seconds(20));
    link.beat = 0.1;
    hear(detector, link, 10'000);
    EXPECT_LT(silence_until_dead(detector, kStart + from_seconds(link.arrived)), from_seconds(2));
  }
}

// A pause of our own kills no peer, however long, beginning at any moment between two beats. We read at the
// end one beat that has piled up, or none for 100 ms more. A beat clears the peer of all suspicion, and the
// pause is not learnt.
TEST(FailureDetector, OurOwnPauseKillsNobody) {
  for (int beats : {0, 3, 300}) {
    for (int phase_ms = 0; phase_ms < 100; phase_ms += 7) {
      for (int pause_ms = 50; pause_ms <= 40'000; pause_ms += (pause_ms < 3000 ? 50 : 4111)) {
        FailureDetector detector(kStart);
        Link link{.rng = Rng(1, Purpose::kTest)};
        const Instant stop = hear(detector, link, beats) + from_milliseconds(phase_ms);
        const Duration usual = silence_until_dead(detector, stop);
        const Instant back = stop + from_milliseconds(pause_ms);
        ASSERT_NE(detector.verdict(back), Verdict::kDead) << pause_ms << " ms";
        const Instant heard = back + from_milliseconds(100);
        ASSERT_FALSE(dies_before(detector, heard)) << pause_ms << " ms";
        detector.heard(heard);
        EXPECT_EQ(detector.verdict(heard), Verdict::kAlive);
        if (pause_ms > 3000) {
          EXPECT_LT(silence_until_dead(detector, heard), usual + kBeat + kBeat);
        }
      }
    }
  }
}

// Our pause is also found if the beat, or the closing of the stream, is read before anybody asks for the
// verdict. Peers that hung up because we were silent get the time of a silence, not of a kill.
TEST(FailureDetector, OurOwnPauseIsFoundByWhateverComesFirst) {
  const Duration pause = from_seconds(30);
  FailureDetector first(kStart);
  Link link{.rng = Rng(1, Purpose::kTest)};
  const Instant stop = hear(first, link, 300);
  const Instant back = stop + pause;
  FailureDetector hung_up = first;
  FailureDetector told = first;
  FailureDetector later = first;

  first.heard(back);
  EXPECT_EQ(first.verdict(back), Verdict::kAlive);
  EXPECT_LT(silence_until_dead(first, back), from_seconds(2));

  hung_up.closed(back);
  EXPECT_EQ(hung_up.verdict(back), Verdict::kSuspected);
  EXPECT_GT(silence_until_dead(hung_up, back), from_seconds(1));
  hung_up.heard(back + from_seconds(1));
  hung_up.closed(back + from_seconds(1));
  EXPECT_GT(silence_until_dead(hung_up, back + from_seconds(1)), from_seconds(1))
      << "what was heard may be old";
  for (int tenths = 0; tenths <= 60; ++tenths) later.heard(back + from_milliseconds(100 * tenths));
  later.closed(back + from_seconds(6));
  EXPECT_LT(silence_until_dead(later, back + from_seconds(6)), from_milliseconds(300));

  told.closed(stop);
  told.resumed(back);
  EXPECT_EQ(told.verdict(back), Verdict::kSuspected);
  EXPECT_GT(silence_until_dead(told, back), from_seconds(1));
}

// A caller that is a second late every time still finds the dead: there is one excuse in a silence.
TEST(FailureDetector, ALateCallerStillFindsTheDead) {
  FailureDetector detector(kStart);
  Instant now = kStart;
  int calls = 0;
  while (const std::optional<Instant> wakeup = detector.next_wakeup()) {
    now = *wakeup + from_seconds(1);
    (void)detector.verdict(now);
    ASSERT_LT(++calls, 4);
  }
  EXPECT_LT(now, kStart + from_seconds(6));
}

// The verdict never improves until the next input, whatever came before. It changes exactly at next_wakeup(),
// and there is a next one until the peer is dead. Dead is final.
TEST(FailureDetector, WithoutInputTheVerdictOnlyGetsWorse) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    FailureDetector detector(kStart);
    Instant now = kStart;
    Verdict said = Verdict::kAlive;
    for (int i = 0; i < 60; ++i) {
      now = now + from_seconds(std::pow(10.0, uniform(rng, -4, 0.5)));
      switch (rng.below(8)) {
        case 0: detector.closed(now); break;
        case 1: detector.resumed(now); break;
        case 2:
        case 3:
          detector.heard(now);
          if (said != Verdict::kDead) said = Verdict::kAlive;
          break;
        default: break;
      }
      const Verdict next = detector.verdict(now);
      ASSERT_GE(next, said);
      said = next;
      const std::optional<Instant> wakeup = detector.next_wakeup();
      ASSERT_EQ(wakeup.has_value(), said != Verdict::kDead);
      if (!wakeup) continue;
      ASSERT_GT(*wakeup, now);
      ASSERT_EQ(FailureDetector(detector).verdict(*wakeup + kBefore), said);
      ASSERT_GT(FailureDetector(detector).verdict(*wakeup), said);
    }
    while (const std::optional<Instant> wakeup = detector.next_wakeup()) (void)detector.verdict(*wakeup);
    detector.heard(now + from_seconds(1e4));
    detector.resumed(now + from_seconds(1e4));
    EXPECT_EQ(detector.verdict(now + from_seconds(1e4)), Verdict::kDead);
  }
}

}  // namespace
}  // namespace gossamer::cluster
