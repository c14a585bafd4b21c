// SPDX-License-Identifier: Apache-2.0
#include "simulation/watch/slander.h"

#include <gtest/gtest.h>

#include <vector>

namespace gossamer::simulation {
namespace {

net::PeerId slander_peer(std::uint64_t node) { return {NodeId(node), Incarnation(node)}; }

membership::ToCoordinator beat_of_broken(const std::vector<std::uint64_t>& nodes) {
  membership::ToCoordinator said;
  said.mutable_beat();
  for (const std::uint64_t node : nodes) {
    membership::Broke& broke = *said.mutable_beat()->add_broke();
    broke.set_node(node);
    broke.set_incarnation(node);
  }
  return said;
}

// Claim: a member is framed while two liars accuse it and nobody else does. What an accuser no longer says,
// and what one says that is gone, counts no more.
TEST(Slander, FramedByLiarsAlone) {
  Slander slander([](Incarnation one) { return one.value < 10; });
  EXPECT_FALSE(slander.framed(slander_peer(20)));
  slander.heard(slander_peer(1), beat_of_broken({20, 21}));
  EXPECT_FALSE(slander.framed(slander_peer(20))) << "one liar alone costs no life";
  slander.heard(slander_peer(2), beat_of_broken({20}));
  EXPECT_TRUE(slander.framed(slander_peer(20)));
  EXPECT_FALSE(slander.framed(slander_peer(21)));
  slander.heard(slander_peer(11), beat_of_broken({20}));
  EXPECT_FALSE(slander.framed(slander_peer(20))) << "an honest one says so, too";
  slander.heard(slander_peer(11), beat_of_broken({}));
  EXPECT_TRUE(slander.framed(slander_peer(20)));
  slander.gone(slander_peer(1));
  EXPECT_FALSE(slander.framed(slander_peer(20)));
}

// Claim: a dispute with liars alone is known as such, whoever of the two accuses; with an honest one beside
// them it is none.
TEST(Slander, DisputesWithLiarsAlone) {
  const auto unreachable = [](std::uint64_t node) {
    membership::ToCoordinator said;
    said.mutable_beat()->add_unreachable(node);
    return said;
  };
  Slander slander([](Incarnation one) { return one.value < 10; });
  EXPECT_FALSE(slander.disputes_with_liars(slander_peer(20))) << "it has none";
  slander.heard(slander_peer(20), unreachable(1));
  EXPECT_FALSE(slander.disputes_with_liars(slander_peer(20))) << "nobody knows the other";
  slander.heard(slander_peer(1), unreachable(30));
  EXPECT_TRUE(slander.disputes_with_liars(slander_peer(20)));
  EXPECT_TRUE(slander.disputes_with_liars(slander_peer(30)));
  slander.heard(slander_peer(11), unreachable(20));
  EXPECT_FALSE(slander.disputes_with_liars(slander_peer(20)));
}

// Claim: a quarrel with a liar is a dispute also while their link is up, whoever of the two says that a rule
// was broken. Once an honest member says so too, it is no dispute with liars alone.
TEST(Slander, QuarrelsWithLiarsAlone) {
  Slander slander([](Incarnation one) { return one.value < 10; });
  slander.heard(slander_peer(20), beat_of_broken({1}));
  EXPECT_TRUE(slander.disputes_with_liars(slander_peer(20)));
  slander.heard(slander_peer(2), beat_of_broken({21}));
  EXPECT_TRUE(slander.disputes_with_liars(slander_peer(21)));
  slander.heard(slander_peer(11), beat_of_broken({20}));
  EXPECT_FALSE(slander.disputes_with_liars(slander_peer(20)));
  slander.heard(slander_peer(21), beat_of_broken({2, 22}));
  EXPECT_FALSE(slander.disputes_with_liars(slander_peer(21)));
}

}  // namespace
}  // namespace gossamer::simulation
