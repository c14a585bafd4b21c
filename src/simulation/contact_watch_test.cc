// SPDX-License-Identifier: Apache-2.0
#include "simulation/contact_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "simulation/test_counting_fleet.h"

namespace gossamer::simulation {
namespace {

constexpr Incarnation kOne(2);
constexpr Incarnation kOther(3);

Instant at(double seconds) { return {from_seconds(seconds).ns}; }

// Claim: a pair is judged once it has been deaf, and both have been led, for 8 s without a break.
TEST(PairWatch, DeafPairsThatAreLedHaveTime) {
  const PairWatch::Seen deaf{.led = {kOne, kOther}, .deaf = {{kOne, kOther}}};
  const PairWatch::Seen hears{.led = {kOne, kOther}};
  const PairWatch::Seen unled{.led = {kOne}, .deaf = {{kOne, kOther}}};
  for (const PairWatch::Seen& breaks : {hears, unled}) {
    PairWatch watch;
    EXPECT_EQ(watch.look(hears, at(0)), std::nullopt);
    EXPECT_EQ(watch.look(deaf, at(1)), std::nullopt);
    EXPECT_EQ(watch.look(deaf, at(8)), std::nullopt);
    EXPECT_EQ(watch.look(breaks, at(9)), std::nullopt);
    EXPECT_EQ(watch.look(deaf, at(10)), std::nullopt);
    EXPECT_EQ(watch.look(deaf, at(17)), std::nullopt);
    EXPECT_NE(watch.look(deaf, at(18)), std::nullopt);
  }
}

// Claim: members that do not reach each other are heard through the coordinator, and it is seen if they are
// not.
TEST(ContactWatch, BrokenPairsTakeAnotherWay) {
  for (const cluster::Defect defect : {cluster::Defect::kNone, cluster::Defect::kNoOtherWay}) {
    CountingFleet fleet({.defect = defect});
    fleet->run_for(10);
    fleet->cut_for("m1", "m2", from_seconds(12));
    fleet->run_for(12);
    EXPECT_EQ(fleet->failure().has_value(), defect == cluster::Defect::kNoOtherWay);
  }
}

}  // namespace
}  // namespace gossamer::simulation
