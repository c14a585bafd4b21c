// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/followed_coordinator.h"

#include <gtest/gtest.h>

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

// Claim: a member that searches asks all known coordinators in turn, every 0.25 s, until one is heard.
TEST_F(FollowedCoordinatorTest, AsksInTurn) {
  followed_.follow(lead(1, 1), {});
  followed_.tick({});
  EXPECT_FALSE(followed_.next_wakeup().has_value());
  followed_.search_soon({});
  for (const double seconds : {0.0, 0.1, 0.25, 0.5}) followed_.tick(at(seconds));
  EXPECT_EQ(asked_, (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_TRUE(followed_.heard(Generation(1), at(0.6)));
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
