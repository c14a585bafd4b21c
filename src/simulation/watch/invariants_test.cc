// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/invariants.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace gossamer::simulation {
namespace {

using cluster::LeaseKeys;
using cluster::LeaseSpace;

constexpr Incarnation kFirst{2};
constexpr Incarnation kSecond{3};

LeaseKeys keys(std::uint64_t begin, std::uint64_t end) { return {LeaseSpace(1), begin, end}; }

bool always(Incarnation, const LeaseKeys&) { return true; }
bool never(Incarnation, const LeaseKeys&) { return false; }
bool nobody(Incarnation) { return false; }

// Claim: two believers in a common key are seen, whatever their ranges. These are not faults: neighbours, the
// same holder, a holder that has stopped believing, and a fenced one.
TEST(Invariants, LeasesMustNotOverlap) {
  struct Case {
    LeaseKeys other;
    bool broken;
  };
  for (const Case& one : {Case{keys(2, 4), true}, Case{keys(0, 9), true}, Case{keys(3, 4), true},
                          Case{keys(1, 3), true}, Case{keys(0, 2), false}, Case{keys(4, 5), false}}) {
    Invariants watched(nobody);
    watched.believes(keys(2, 4), kFirst, always);
    watched.believes(one.other, kSecond, always);
    EXPECT_EQ(watched.violation().has_value(), one.broken) << one.other.begin << " to " << one.other.end;
  }
  Invariants same(nobody);
  same.believes(keys(2, 4), kFirst, always);
  same.believes(keys(3, 5), kFirst, always);
  EXPECT_EQ(same.violation(), std::nullopt);
  Invariants past(nobody);
  past.believes(keys(2, 4), kFirst, always);
  past.believes(keys(3, 5), kSecond, never);
  EXPECT_EQ(past.violation(), std::nullopt);
  Invariants fenced([](Incarnation one) { return one == kFirst; });
  fenced.believes(keys(2, 4), kFirst, always);
  fenced.believes(keys(3, 5), kSecond, always);
  EXPECT_EQ(fenced.violation(), std::nullopt);
}

// Claim: an incarnation that says what is untrue counts no more than a fenced one: neither its lease, nor its
// samples, nor its steps.
TEST(Invariants, DiscountedLivesCountForNothing) {
  for (const bool discounted : {false, true}) {
    // Whichever of the two acts first.
    const auto broken = [&](const auto& act) {
      Invariants before(nobody);
      Invariants after(nobody);
      if (discounted) before.discount(kFirst);
      if (discounted) after.discount(kSecond);
      for (Invariants* const watched : {&before, &after}) {
        act(*watched, kFirst);
        act(*watched, kSecond);
      }
      EXPECT_EQ(before.violation().has_value(), after.violation().has_value());
      return before.violation().has_value();
    };
    EXPECT_NE(broken([](Invariants& watched, Incarnation one) { watched.believes(keys(2, 4), one, always); }),
              discounted);
    EXPECT_NE(broken([](Invariants& watched, Incarnation one) { watched.applied(1, StepNumber(3), one); }),
              discounted);
    EXPECT_NE(broken([](Invariants& watched, Incarnation one) {
                watched.counted(
                    {.track = cluster::TrackId(1), .step = {}, .ids = {SampleId(4), SampleId(6)}, .by = one});
              }),
              discounted);
  }
}

// Claim: a committed step is held by every member that has taken up the placement in force. Members that do
// not know of it yet, and fenced ones, do not count.
TEST(Invariants, WhatIsCommittedHasALivingCopy) {
  const auto broken = [](Epoch in_force, std::uint64_t committed, Incarnation dead) {
    Invariants watched([dead](Incarnation one) { return one == dead; });
    watched.took_up(kFirst, Epoch(4), {0, 1}, StepNumber(5));
    watched.applied(0, StepNumber(5), kFirst);
    watched.committed(StepNumber(committed), in_force);
    return watched.violation().has_value();
  };
  EXPECT_FALSE(broken(Epoch(4), 5, {}));
  EXPECT_TRUE(broken(Epoch(4), 6, {}));  // thing 1 lags
  EXPECT_FALSE(broken(Epoch(5), 6, {}));
  EXPECT_FALSE(broken(Epoch(4), 6, kFirst));
}

// Claim: a life must not go back, unless it has said what is untrue.
TEST(Invariants, HonestLivesNeverGoBack) {
  Invariants watched(nobody);
  watched.discount(kSecond);
  watched.goes_back(kSecond, StepNumber(6), StepNumber(5));
  EXPECT_EQ(watched.violation(), std::nullopt);
  watched.goes_back(kFirst, StepNumber(6), StepNumber(5));
  EXPECT_NE(watched.violation(), std::nullopt);
}

// Claim: a placement goes on neither before the committed step nor from a step that no member has reached.
TEST(Invariants, PlacementsGoOnFromWhereSomebodyWas) {
  const auto broken = [](std::uint64_t resume) {
    Invariants watched(nobody);
    watched.applied(0, StepNumber(6), kFirst);
    watched.committed(StepNumber(5), Epoch(4));
    watched.resumes(Epoch(5), StepNumber(resume));
    return watched.violation().has_value();
  };
  EXPECT_TRUE(broken(4));
  EXPECT_FALSE(broken(5));
  EXPECT_FALSE(broken(7));
  EXPECT_TRUE(broken(8));
}

// Claim: a run that goes back, because all that were further are fenced, has taken as many steps as it goes
// on from. What those that are fenced still do counts for nothing.
TEST(Invariants, StepsAreCountedFromWhereTheRunWentBack) {
  bool gone = false;
  Invariants watched([&gone](Incarnation one) { return gone && one == kFirst; });
  watched.applied(0, StepNumber(9), kFirst);
  EXPECT_EQ(watched.applied_steps(), StepNumber(10));
  gone = true;
  watched.resumes(Epoch(5), StepNumber(4));
  EXPECT_EQ(watched.applied_steps(), StepNumber(4));
  watched.applied(0, StepNumber(10), kFirst);
  EXPECT_EQ(watched.applied_steps(), StepNumber(4));
  watched.applied(0, StepNumber(4), kSecond);
  EXPECT_EQ(watched.applied_steps(), StepNumber(5));
  EXPECT_EQ(watched.violation(), std::nullopt);
}

}  // namespace
}  // namespace gossamer::simulation
