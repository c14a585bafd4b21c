// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/followed_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cluster/control/test_leadership.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {
namespace {

class FollowedCoordinatorTest : public ::testing::Test {
 protected:
  static membership::LeadAnswer lead(std::uint64_t generation, std::uint64_t incarnation) {
    membership::LeadAnswer answer;
    answer.set_generation(generation);
    answer.set_incarnation(incarnation);
    for (const char* const host : {"a", "b"}) answer.add_coordinators()->set_host(host);
    return answer;
  }

  Nobody nobody_;
  net::Links links_{nobody_, {.run = "run", .self = {NodeId(2), Incarnation(3)}, .program = "test"}};
  std::vector<std::string> asked_;
  FollowedCoordinator followed_{
      {.run = "run"},
      links_,
      [this](const host::Endpoint& to, const std::string&) { asked_.push_back(to.host); },
      {}};
};

// Claim: a member that searches asks all known coordinators in turn until one is heard: at once, after about
// 0.25 s, then ever more rarely, up to about every 2 s.
TEST_F(FollowedCoordinatorTest, AsksInTurn) {
  followed_.follow(lead(1, 1), {});
  followed_.tick({});
  EXPECT_FALSE(followed_.next_wakeup().has_value());
  followed_.search_soon({});
  std::vector<double> when;
  for (int ms = 0; ms < 30'000; ms += 10) {
    const std::size_t before = asked_.size();
    followed_.tick(at(0.001 * ms));
    if (asked_.size() > before) when.push_back(0.001 * ms);
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) EXPECT_EQ(asked_[i], i % 2 == 0 ? "a" : "b");
  ASSERT_GT(when.size(), 12U);
  EXPECT_LT(when.size(), 22U);
  double wait = 0.25;
  for (std::size_t i = 1; i < when.size(); ++i) {
    EXPECT_NEAR(when[i] - when[i - 1], wait, 0.25 * wait + 0.011) << i;
    wait = std::min(2 * wait, 2.0);
  }
  EXPECT_TRUE(followed_.heard(Generation(1), at(30)));
  EXPECT_FALSE(followed_.next_wakeup().has_value());
}

// Claim: neither an answer nor a message of a lower generation counts.
TEST_F(FollowedCoordinatorTest, FollowsTheHighestGeneration) {
  followed_.follow(lead(2, 5), {});
  followed_.answered(lead(1, 9).SerializeAsString(), {});
  EXPECT_EQ(followed_.peer(), (net::PeerId{kCoordinatorNode, Incarnation(5)}));
  EXPECT_FALSE(followed_.heard(Generation(1), at(1)));
  EXPECT_EQ(followed_.silence(at(1)), from_seconds(1));
  followed_.answered(lead(3, 9).SerializeAsString(), at(1));
  EXPECT_EQ(followed_.peer(), (net::PeerId{kCoordinatorNode, Incarnation(9)}));
  EXPECT_EQ(followed_.generation(), Generation(3));
}

// Claim: an answer of the coordinator that is followed already does not take an attempt down that is under
// way. It takes longer than the answer, because it has more round trips.
TEST_F(FollowedCoordinatorTest, LeavesAnAttemptAlone) {
  followed_.follow(lead(1, 1), {});
  const host::ConnectionId last = nobody_.connect({}, host::Lane::kControl);
  for (int i = 1; i < 40; ++i) followed_.answered(lead(1, 1).SerializeAsString(), at(0.25 * i));
  EXPECT_EQ(nobody_.connect({}, host::Lane::kControl).value, last.value + 1);
  EXPECT_TRUE(links_.linked(kCoordinatorNode));
}

// Claim: another coordinator begins unheard, and a link that is up twice is news once.
TEST_F(FollowedCoordinatorTest, AnotherLifeBeginsAnew) {
  followed_.follow(lead(1, 1), {});
  EXPECT_TRUE(followed_.up());
  EXPECT_FALSE(followed_.up());
  EXPECT_TRUE(followed_.heard(Generation(1), {}));
  EXPECT_TRUE(followed_.was_heard());
  followed_.follow(lead(2, 2), {});
  EXPECT_FALSE(followed_.was_heard());
  EXPECT_FALSE(followed_.linked());
}

}  // namespace
}  // namespace gossamer::cluster
