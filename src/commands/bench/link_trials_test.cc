// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/link_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "net/link/test_simulated_nodes.h"

namespace gossamer::commands {
namespace {

using net::Node;
using ::testing::HasSubstr;

constexpr double kRateBytes = 12.5e6;  // 100 Mb/s
constexpr double kOneWay = 0.010;

class LinkTrialsTest : public net::LinksTest {
 protected:
  LinkTrialsTest() {
    internet_.set_default_path({.delay = from_seconds(kOneWay)});
    plan_.trials = {LinkTrial::kRoundTrip, LinkTrial::kMessage, LinkTrial::kMessages, LinkTrial::kExchange,
                    LinkTrial::kControlBesideBulk};
    plan_.bytes = 4'000'000;
    plan_.message_bytes = 1000;
    plan_.transfers = 3;
    plan_.rounds = 20;
    plan_.pings = 20;
  }

  LinkTrials& add(std::uint64_t number, std::uint64_t of) {
    Node& node = start(number);
    node.consumes = false;
    internet_.set_rates(node.machine, {.up_bytes_per_second = kRateBytes, .down_bytes_per_second = 1e9});
    auto made = std::make_unique<LinkTrials>(
        *node.links, LinkTrials::Options{.self = node.id.node, .nodes = of, .plan = plan_}, timeline_.now());
    LinkTrials& trials = *made;
    node.on_event = [this, &trials](const net::LinkEvent& event) { trials.on(event, timeline_.now()); };
    trials_.push_back(std::move(made));
    look(trials);
    return trials;
  }
  void look(LinkTrials& trials) {
    timeline_.at(std::max(timeline_.now(), trials.next_wakeup()), [this, &trials] {
      trials.tick(timeline_.now());
      look(trials);
    });
  }
  void open_all() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (std::size_t j = i + 1; j < nodes_.size(); ++j) nodes_[i]->open(*nodes_[j]);
    }
  }

  LinkTrialPlan plan_;
  std::vector<std::unique_ptr<LinkTrials>> trials_;
};

// The times on a line of known delay and rate are what the line says. A transfer takes bytes / rate and
// a round trip. A round of the exchange takes one way and its bytes. A control message beside bulk
// takes little more than one way.
TEST_F(LinkTrialsTest, MeasuresWhatTheLineIs) {
  for (std::uint64_t number = 1; number <= 3; ++number) add(number, 3);
  open_all();
  run_for(120);
  for (const auto& trials : trials_) {
    ASSERT_FALSE(trials->failure().has_value()) << trials->failure()->message();
    EXPECT_TRUE(trials->over());
  }
  const std::vector<LinkTrialTimes>& times = trials_[0]->times();
  ASSERT_EQ(times.size(), 5U);
  const auto check = [](const LinkTrialTimes& one, std::size_t count, double least, double most) {
    EXPECT_EQ(one.seconds.size(), count) << name(one.trial);
    EXPECT_GE(std::ranges::min(one.seconds), least) << name(one.trial);
    EXPECT_LE(std::ranges::max(one.seconds), most) << name(one.trial);
  };
  const double transfer = 4e6 / kRateBytes + 2 * kOneWay;
  check(times[0], 20, 2 * kOneWay, 2.05 * kOneWay);
  check(times[1], 3, transfer, 1.02 * transfer);
  check(times[2], 3, transfer, 1.1 * transfer);
  const double round = kOneWay + 2 * 65536 / kRateBytes;
  check(times[3], 20, round, 1.2 * round);
  check(times[4], 20, 2 * kOneWay, 4 * kOneWay);
  EXPECT_NEAR(times[4].bulk_bytes_per_second / kRateBytes, 1, 0.1);
  ASSERT_EQ(trials_[2]->times().size(), 1U);
  check(trials_[2]->times()[0], 20, round, 1.2 * round);
}

// A node that does not come is named by all others once nothing has moved for long enough.
TEST_F(LinkTrialsTest, NamesWhoIsMissing) {
  for (std::uint64_t number = 1; number <= 2; ++number) add(number, 3);
  net::PeerAddress nowhere{.node = NodeId{3}, .control = {"m3", 9}, .bulk = {"m3", 10}};
  open_all();
  for (const auto& node : nodes_) node->links->open(nowhere, timeline_.now());
  run_for(25);
  for (const auto& trials : trials_) EXPECT_FALSE(trials->failure().has_value());
  run_for(20);
  for (const auto& trials : trials_) {
    ASSERT_TRUE(trials->failure().has_value());
    EXPECT_EQ(trials->failure()->where, "node-3");
  }
}

// Nodes that were started with different keys say so, and name the difference.
TEST_F(LinkTrialsTest, RefusesAnotherPlan) {
  add(1, 2);
  plan_.rounds = 7;
  add(2, 2);
  open_all();
  run_for(5);
  ASSERT_TRUE(trials_[0]->failure().has_value());
  EXPECT_THAT(trials_[0]->failure()->message(), HasSubstr("rounds=7"));
  EXPECT_EQ(trials_[0]->failure()->where, "node-2");
}

// A node that vanishes in the middle is named after the patience, and the exchange does not go on.
TEST_F(LinkTrialsTest, NamesWhoVanished) {
  for (std::uint64_t number = 1; number <= 3; ++number) add(number, 3);
  open_all();
  run_for(2);
  ASSERT_FALSE(trials_[0]->times().empty());
  internet_.vanish(nodes_[2]->machine);
  run_for(120);
  ASSERT_TRUE(trials_[0]->failure().has_value());
  EXPECT_EQ(trials_[0]->failure()->where, "node-3");
}

}  // namespace
}  // namespace gossamer::commands
