// SPDX-License-Identifier: Apache-2.0
//
// Nodes that join together, as a coordinator alone sees them.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cluster/control/test_coordinator.h"

namespace gossamer::cluster {
namespace {

class JoiningTogether : public CoordinatorTest {};

// Claim: twenty nodes that arrive together change the view once, whatever their order, and at most kTogether
// after the first of them was ready. One that becomes ready later is another change.
TEST_F(JoiningTogether, ChangesTheViewOnce) {
  for (std::uint64_t node = 10; node < 12; ++node) serve(begin(node));
  const Epoch before = coordinator_->view().epoch();
  std::vector<net::PeerId> peers;
  for (std::uint64_t node = 20; node < 41; ++node) peers.push_back(begin(node));
  const net::PeerId late = peers.back();
  peers.pop_back();
  for (const net::PeerId peer : peers) {
    EXPECT_EQ(coordinator_->view().epoch(), before);
    serve(peer);
    now_ = now_ + from_milliseconds(40);
  }
  now_ = now_ + from_milliseconds(200);
  coordinator_->tick(now_);
  store();
  EXPECT_EQ(coordinator_->view().epoch(), Epoch(before.value + 1));
  EXPECT_EQ(coordinator_->view().members().size(), 22U);
  rest();
  serve(late);
  EXPECT_EQ(coordinator_->view().epoch(), Epoch(before.value + 2));
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kSettled);
}

}  // namespace
}  // namespace gossamer::cluster
