// SPDX-License-Identifier: Apache-2.0
#include "node/store_thread.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "host/posix/mailbox.h"
#include "host/sim/clock.h"
#include "host/sim/store.h"

namespace gossamer::node {
namespace {

// Claim: whoever ends with the lead gives it up, so that a successor has it at once.
TEST(StoreThread, GivesTheLeadUpAtItsEnd) {
  host::SimClock clock;
  host::SimStoreMedium medium(clock, {.lease = from_seconds(1000)});
  host::Mailbox<cluster::StoreAnswer> answers;
  for (int life = 1; life <= 3; ++life) {
    StoreThread thread(medium.open(),
                       [&answers](cluster::StoreAnswer answer) { answers.push(std::move(answer)); });
    thread.call(cluster::Campaign{.candidate = {.name = "one", .address = {}}});
    const auto got = answers.wait(from_seconds(60));
    ASSERT_EQ(got.size(), 1U);
    const auto* const campaign = std::get_if<cluster::CampaignAnswer>(&got.front());
    ASSERT_NE(campaign, nullptr);
    ASSERT_TRUE(campaign->ok()) << campaign->error().message();
    EXPECT_TRUE((*campaign)->has_value()) << "life " << life;
  }
}

}  // namespace
}  // namespace gossamer::node
