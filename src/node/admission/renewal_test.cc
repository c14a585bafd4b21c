// SPDX-License-Identifier: Apache-2.0
#include "node/admission/renewal.h"

#include <gtest/gtest.h>

namespace gossamer::node {
namespace {

constexpr std::int64_t kWeekSeconds = std::int64_t{7} * 24 * 3600;
constexpr double kStart = 1.8e9;
constexpr double kOneDay = 24 * 3600;

std::string certificate(double now, std::int64_t seconds) {
  const host::Validity validity{.now_seconds = now, .days = 0, .seconds = seconds};
  const auto authority = host::make_authority("run", {.now_seconds = kStart, .days = 3650});
  const auto own = host::make_request();
  return *host::sign_request(*authority, own->request, "node-2", validity);
}

// A certificate of seven days is due after three and a half. If nobody answers, attempts are repeated, at
// most once an hour, until its end: some 80 of them.
TEST(RenewalTest, LongBeforeTheEnd) {
  Renewal renewal(certificate(kStart, kWeekSeconds));
  EXPECT_EQ(renewal.until(), kStart + 7 * kOneDay);
  EXPECT_FALSE(renewal.due(kStart + 3.4 * kOneDay));
  int attempts = 0;
  double first = 0;
  for (double now = kStart; now < renewal.until();) {
    const double look = renewal.look_again_in(now).seconds();
    EXPECT_LE(look, Renewal::kLongestLook + 1e-6);
    now += std::max(look, 1.0);
    if (!renewal.due(now)) continue;
    if (attempts++ == 0) first = now;
    renewal.attempt(now);
    EXPECT_FALSE(renewal.due(now));
  }
  EXPECT_NEAR(first, kStart + 3.5 * kOneDay, 61);
  EXPECT_GE(attempts, 80);
  EXPECT_LE(attempts, 85);
}

// A year of renewals: each time the new certificate holds for seven days more, and never less than three and
// a half days are left.
TEST(RenewalTest, AYear) {
  double now = kStart;
  Renewal renewal(certificate(now, kWeekSeconds));
  int renewals = 0;
  for (; now < kStart + 365 * kOneDay; now += 3600) {
    EXPECT_GE(renewal.until() - now, 3.4 * kOneDay);
    if (!renewal.due(now)) continue;
    renewal = Renewal(certificate(now, kWeekSeconds));
    ++renewals;
  }
  EXPECT_GE(renewals, 100);
}

// A machine that slept is due when it wakes. A certificate of seconds is tried each second. What is no
// certificate is never due.
TEST(RenewalTest, OtherTimes) {
  EXPECT_TRUE(Renewal(certificate(kStart, kWeekSeconds)).due(kStart + 5 * kOneDay));
  Renewal seconds(certificate(kStart, 20));
  EXPECT_FALSE(seconds.due(kStart + 9));
  EXPECT_TRUE(seconds.due(kStart + 10));
  seconds.attempt(kStart + 10);
  EXPECT_EQ(seconds.look_again_in(kStart + 10).seconds(), 1.0);
  EXPECT_TRUE(seconds.due(kStart + 11));
  EXPECT_FALSE(Renewal("garbage").ended(kStart + 1000 * kOneDay));
  EXPECT_FALSE(Renewal("garbage").due(kStart + 1000 * kOneDay));
  EXPECT_FALSE(Renewal().due(kStart + 1000 * kOneDay));
}

// Claim: once a certificate has ended, attempts are at most ten seconds apart, and go on for ever. Before its
// end they may be an hour apart.
TEST(RenewalTest, AfterTheEnd) {
  Renewal renewal(certificate(kStart, kWeekSeconds));
  const double end = renewal.until();
  EXPECT_FALSE(renewal.ended(end - 1));
  EXPECT_TRUE(renewal.ended(end));
  renewal.attempt(end - 7200);
  EXPECT_FALSE(renewal.due(end - 7200 + 3599));
  for (const double now : {end, end + kOneDay, end + 400 * kOneDay}) {
    EXPECT_TRUE(renewal.due(now));
    renewal.attempt(now);
    EXPECT_FALSE(renewal.due(now + 9.9));
    EXPECT_TRUE(renewal.due(now + 10));
  }
}

// Claim: a clock that is ahead for a while and is set back costs no renewal. An attempt that failed while it
// was ahead is repeated at once, whether it was ahead for minutes, for a day or for a year. The attempts
// after it keep their distance.
TEST(RenewalTest, AClockThatWasAheadAtAnAttempt) {
  for (const double ahead : {600.0, kOneDay, 365 * kOneDay}) {
    Renewal renewal(certificate(kStart, kWeekSeconds));
    const double now = kStart + 4 * kOneDay;
    ASSERT_TRUE(renewal.due(now + ahead));
    renewal.attempt(now + ahead);
    EXPECT_FALSE(renewal.due(now + ahead + 1));
    EXPECT_TRUE(renewal.due(now)) << ahead;
    renewal.attempt(now);
    EXPECT_FALSE(renewal.due(now + 3599));
    EXPECT_TRUE(renewal.due(now + 3600));
  }
}

// Claim: a certificate that was signed while the clock was ahead is renewed once the clock is right, if it
// does not hold yet by then. Until that works, attempts are ten seconds apart. One that holds waits for its
// own half of the time, and never less than half is left.
TEST(RenewalTest, AClockThatWasAheadAtTheSigning) {
  for (const double ahead : {600.0, 0.99 * kOneDay, 1.01 * kOneDay, 365 * kOneDay}) {
    Renewal renewal(certificate(kStart + ahead, kWeekSeconds));
    EXPECT_FALSE(renewal.due(kStart + ahead));
    EXPECT_EQ(renewal.due(kStart), ahead > kOneDay) << ahead;
    if (ahead < kOneDay) {
      EXPECT_TRUE(renewal.due(kStart + ahead + 3.5 * kOneDay));
      continue;
    }
    renewal.attempt(kStart);
    EXPECT_FALSE(renewal.due(kStart + 9.9));
    EXPECT_TRUE(renewal.due(kStart + 10));
  }
}

}  // namespace
}  // namespace gossamer::node
