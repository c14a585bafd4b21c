// SPDX-License-Identifier: Apache-2.0
#include "node/accompanied.h"

#include <gtest/gtest.h>

#include "cluster/control/test_store_rows.h"
#include "host/sim/clock.h"
#include "net/link/test_counting_network.h"

namespace gossamer::node {
namespace {

class NothingToDo final : public cluster::Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    return {{.id = placement::ThingId(0), .bytes = 1, .work = 1}};
  }
  [[nodiscard]] bool readable(const std::string&) const override { return true; }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest&) override { return {.bytes = "decision"}; }
};

// Says from its first moment that the run is over.
class OverCompanion final : public Companion {
 public:
  void connect(net::Links*) override {}
  void on(net::Arrived, Instant) override {}
  void tick(Instant) override {}
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::string> over() const override { return "all steps are done"; }
  [[nodiscard]] std::vector<std::string> take_remarks() override { return {}; }
};

class AccompaniedTest : public ::testing::Test {
 protected:
  static cluster::CoordinatorProcess::Options options() {
    cluster::CoordinatorProcess::Options options;
    options.coordinator.run = "run";
    options.lead_time = from_seconds(2);
    options.keep_every = from_seconds(0.5);
    return options;
  }
  // The store carries out what it is asked, but for commits that it may not get.
  void store(bool takes_commits) {
    while (const auto call = process_.next_call(loop_.now())) {
      if (std::holds_alternative<cluster::Campaign>(*call)) {
        process_.answered(cluster::CampaignAnswer(Generation(++leads_)), loop_.now());
      } else if (std::holds_alternative<cluster::Load>(*call)) {
        std::vector<host::Entry> entries;
        for (const auto& [key, value] : rows_) entries.push_back({.key = key, .value = value});
        process_.answered(cluster::LoadAnswer(std::move(entries)), loop_.now());
      } else {
        const auto* const commit = std::get_if<cluster::Commit>(&*call);
        if (commit != nullptr && !takes_commits) return;
        if (commit != nullptr) cluster::keep(commit->changes, rows_);
        process_.answered(Result<void>(), loop_.now());
      }
    }
  }

  host::SimClock clock_;
  EventLoop loop_{clock_};
  net::CountingNetwork network_;
  NothingToDo workload_;
  cluster::StoreRows rows_;
  std::uint64_t leads_ = 0;
  cluster::CoordinatorProcess process_{options(), network_, workload_, loop_.now()};
  Accompanied accompanied_{loop_, process_,
                           [](const Aside&, const Post&) { return std::make_unique<OverCompanion>(); }};
};

// The companion says that the run is over, and this process loses the lead before the store has that. In its
// next lead it stops the run again: the store knows nothing of the first time.
TEST_F(AccompaniedTest, StopsTheRunInEachLead) {
  store(true);
  ASSERT_NE(process_.coordinator(), nullptr);
  static_cast<void>(accompanied_.tick());
  EXPECT_TRUE(process_.coordinator()->stopped() || process_.coordinator()->ending());
  store(false);
  clock_.advance(from_seconds(3));
  process_.tick(loop_.now());
  ASSERT_EQ(process_.coordinator(), nullptr);
  process_.answered(Result<void>(Error{.what = "no store"}), loop_.now());
  static_cast<void>(accompanied_.tick());
  for (int i = 0; i < 10 && process_.coordinator() == nullptr; ++i) {
    store(true);
    clock_.advance(from_seconds(1));
  }
  ASSERT_NE(process_.coordinator(), nullptr);
  EXPECT_FALSE(process_.coordinator()->stopped() || process_.coordinator()->ending());
  static_cast<void>(accompanied_.tick());
  EXPECT_TRUE(process_.coordinator()->stopped() || process_.coordinator()->ending());
}

}  // namespace
}  // namespace gossamer::node
