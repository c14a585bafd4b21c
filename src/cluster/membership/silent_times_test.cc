// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/silent_times.h"

#include <gtest/gtest.h>

namespace gossamer::cluster {
namespace {

constexpr Incarnation kSilentOne{7};
constexpr Incarnation kAnother{8};
constexpr Duration kAllPatience = from_seconds(600);

// Claim: a row is written each ten seconds of a silence, rounded down, and never falls.
TEST(SilentTimes, AreWrittenNowAndThen) {
  SilentTimes times({});
  int writes = 0;
  for (int ms = 0; ms <= 65'000; ms += 250) {
    if (times.lasts(kSilentOne, from_milliseconds(ms))) ++writes;
    EXPECT_LE(times.rows().size(), 1U);
  }
  EXPECT_EQ(writes, 6);
  EXPECT_EQ(times.rows(), (SilentTimes::Rows{{kSilentOne, from_seconds(60)}}));
  EXPECT_FALSE(times.lasts(kSilentOne, from_seconds(20)));
  EXPECT_EQ(times.rows().at(kSilentOne), from_seconds(60));
}

// Claim: leads of any length add up, but for the last seconds of each, and a member has a minute in each.
TEST(SilentTimes, AddUpOverLeads) {
  SilentTimes::Rows rows;
  double waited = 0;
  int leads = 0;
  for (; leads < 100; ++leads) {
    SilentTimes times(rows);
    const Duration left = times.left_of(kAllPatience, kSilentOne);
    EXPECT_EQ(left, from_seconds(std::max(600.0 - 40 * leads, 60.0))) << leads;
    for (int s = 1; s <= 45; ++s) (void)times.lasts(kSilentOne, from_seconds(s));
    rows = times.rows();
    waited += 45;
    if (left < from_seconds(61)) break;
  }
  EXPECT_LE(waited, 700) << "and then the minute of the last lead";
}

// Claim: a member that is heard has the whole patience again, in this lead and the next. Others keep theirs.
TEST(SilentTimes, EndWithAWord) {
  SilentTimes times({{kSilentOne, from_seconds(300)}, {kAnother, from_seconds(500)}});
  EXPECT_TRUE(times.ends(kSilentOne));
  EXPECT_FALSE(times.ends(kSilentOne));
  EXPECT_EQ(times.left_of(kAllPatience, kSilentOne), kAllPatience);
  EXPECT_EQ(times.left_of(kAllPatience, kAnother), from_seconds(100));
  EXPECT_EQ(times.rows(), (SilentTimes::Rows{{kAnother, from_seconds(500)}}));
  EXPECT_TRUE(times.lasts(kSilentOne, from_seconds(10)));
  EXPECT_EQ(times.rows().at(kSilentOne), from_seconds(10));
}

// Claim: a lead gives a minute at least, and never more than the patience. It gives ten seconds once the
// silence is twice the patience: leads may be shorter than a minute.
TEST(SilentTimes, LeaveAMinute) {
  const SilentTimes times({{kSilentOne, from_seconds(1199)}, {kAnother, from_seconds(1200)}});
  EXPECT_EQ(times.left_of(kAllPatience, kSilentOne), from_seconds(60));
  EXPECT_EQ(times.left_of(kAllPatience, kAnother), from_seconds(10));
  EXPECT_EQ(times.left_of(from_seconds(5), kAnother), from_seconds(5));
}

}  // namespace
}  // namespace gossamer::cluster
