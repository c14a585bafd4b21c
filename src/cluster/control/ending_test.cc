// SPDX-License-Identifier: Apache-2.0
//
// A run that is told to end while members are silent.
#include <gtest/gtest.h>

#include <string>

#include "cluster/control/coordinator.h"
#include "cluster/control/test_coordinator.h"
#include "net/link/peer_id.h"

namespace gossamer::cluster {
namespace {

// Claim: a run that is told to end while no member is heard waits for them as long as without the word, and
// says so. It ends as soon as all are heard. Members that were told are spared for 20 s.
TEST_F(CoordinatorTest, AnEndWaitsForTheSilent) {
  const net::PeerId first = begin(10);
  const net::PeerId second = begin(11);
  serve(first);
  serve(second);
  live(1);
  silence(5);
  coordinator_->stop("enough", now_);
  silence(590);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  EXPECT_EQ(coordinator_->view().members().size(), 2u);
  EXPECT_NE(coordinator_->shortage(now_).find("node 10, 11 is heard"), std::string::npos);
  for (const net::PeerId peer : {first, second}) say(peer, [](auto& said) { said.mutable_beat(); });
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kStopping);
  silence(19);
  EXPECT_EQ(coordinator_->members().size(), 2u);
  silence(2);
  EXPECT_TRUE(coordinator_->members().empty());
}

// Claim: if no member comes back in ten minutes, the run ends.
TEST_F(CoordinatorTest, AnEndDoesNotWaitForTheDead) {
  serve(begin(10));
  serve(begin(11));
  live(1);
  silence(3);
  coordinator_->stop("enough", now_);
  silence(596);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
  silence(2);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kStopping);
  silence(5);
  EXPECT_TRUE(coordinator_->stopped());
}

}  // namespace
}  // namespace gossamer::cluster
