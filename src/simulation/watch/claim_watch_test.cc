// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/claim_watch.h"

#include <gtest/gtest.h>

#include "cluster/control/records.h"

namespace gossamer::simulation {
namespace {

using cluster::Claim;
using cluster::TrackId;

constexpr std::uint64_t kSamples = 4;  // of a step
constexpr TrackId kTrack{2};

Claim claim_of(std::uint64_t by, std::uint64_t begin, std::uint64_t end) {
  return {kTrack, StepNumber(begin / kSamples), {SampleId(begin), SampleId(end)}, Incarnation(by)};
}

// Two members serve: incarnations 5 and 6. Incarnation 7 joins.
class ClaimWatchTest : public ::testing::Test {
 protected:
  ClaimWatchTest() {
    for (const std::uint64_t one : {5U, 6U, 7U}) {
      membership::MemberRecord record;
      record.set_node(one);
      record.set_incarnation(one);
      record.set_state(one == 7 ? membership::JOINING : membership::SERVING);
      durable_.applied(cluster::put_member(record));
    }
  }

  [[nodiscard]] bool good(const host::Change& change) {
    durable_.applied(change);
    return !watch_.applied(change).has_value();
  }
  [[nodiscard]] bool claims(const Claim& claim) { return good(cluster::put_claim(claim)); }
  [[nodiscard]] bool commits(std::uint64_t step) {
    return good(cluster::put_commit({kTrack, StepNumber(step + 1)}));
  }
  void fence(std::uint64_t one) {
    cluster::FencedIncarnations fenced;
    fenced.fence(Incarnation(one));
    EXPECT_TRUE(good(cluster::put_fenced(fenced)));
  }
  [[nodiscard]] bool granted(std::uint64_t to, const Claim& claim) {
    membership::ClaimAnswer answer;
    membership::ClaimRecord& record = *answer.add_granted();
    record.set_track(claim.track.value);
    record.set_step(claim.step.value);
    record.set_begin(claim.ids.begin.value);
    record.set_end(claim.ids.end.value);
    record.set_by(claim.by.value);
    return !watch_.answered(Incarnation(to), answer).has_value();
  }

  Durable durable_;
  ClaimWatch watch_{kSamples, durable_};
};

// Claim: a step whose samples are all claimed may commit, also where the commit of the store is repeated.
TEST_F(ClaimWatchTest, ClaimedStepsCommit) {
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(claims(claim_of(5, 0, 3)));
    EXPECT_TRUE(claims(claim_of(6, 3, 4)));
    EXPECT_TRUE(commits(0));
    EXPECT_TRUE(good(cluster::remove_claim(claim_of(5, 0, 3))));
    EXPECT_TRUE(good(cluster::remove_claim(claim_of(6, 3, 4))));
  }
}

// Claim: a step with a free sample must not commit. A claim that was removed is none.
TEST_F(ClaimWatchTest, FreeSamplesAreSeen) {
  EXPECT_TRUE(claims(claim_of(5, 0, 4)));
  EXPECT_TRUE(claims(claim_of(6, 4, 8)));
  EXPECT_TRUE(commits(0));
  EXPECT_TRUE(good(cluster::remove_claim(claim_of(6, 4, 8))));
  EXPECT_FALSE(commits(1));
}

// Claim: a fenced member's claim is none.
TEST_F(ClaimWatchTest, ClaimsOfTheFencedAreNone) {
  EXPECT_TRUE(claims(claim_of(5, 0, 3)));
  EXPECT_TRUE(claims(claim_of(6, 3, 4)));
  fence(6);
  EXPECT_FALSE(commits(0));
}

// Claim: a sample has one living claimer. After the step's commit it has the same one for ever.
TEST_F(ClaimWatchTest, OneClaimer) {
  EXPECT_TRUE(claims(claim_of(5, 0, 4)));
  EXPECT_FALSE(claims(claim_of(6, 1, 2)));
  fence(5);
  EXPECT_TRUE(claims(claim_of(6, 0, 4)));
  EXPECT_TRUE(commits(0));
  EXPECT_FALSE(claims(claim_of(5, 0, 1)));
}

// Claim: a member that has never served claims nothing.
TEST_F(ClaimWatchTest, JoiningMembersClaimNothing) { EXPECT_FALSE(claims(claim_of(7, 0, 4))); }

// Claim: no sample is granted to a member twice, and none in the name of another.
TEST_F(ClaimWatchTest, GrantedOnce) {
  EXPECT_TRUE(granted(5, claim_of(5, 0, 2)));
  EXPECT_TRUE(granted(6, claim_of(6, 0, 2)));
  EXPECT_FALSE(granted(5, claim_of(5, 1, 3)));
  EXPECT_FALSE(granted(5, claim_of(6, 3, 4)));
}

}  // namespace
}  // namespace gossamer::simulation
