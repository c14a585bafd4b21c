// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_outbox.h"

#include <gmock/gmock.h>
#include <gossamer/reports.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "host/sim/disk.h"
#include "net/link/test_simulated_nodes.h"
#include "node/reports/report_inbox.h"
#include "node/reports/report_journal.h"

namespace gossamer::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A coordinator, which is node 1, and a member, which is node 7.
class ReportOutboxTest : public ::testing::Test {
 protected:
  // The coordinator's process on its disk.
  struct Lead {
    Lead(ReportOutboxTest& test, std::uint64_t incarnation)
        : node(test.timeline_, test.internet_, 1, incarnation), journal(*test.disk_, "/reports") {
      const auto read = journal.open([this](ReportBatch batch) {
        if (const auto fresh = inbox.written_before(std::move(batch))) take(*fresh);
      });
      EXPECT_TRUE(read.ok());
      node.consumes = false;
      node.on_event = [this, &test](const net::LinkEvent& event) {
        const auto* const arrived = std::get_if<net::Arrived>(&event);
        if (arrived == nullptr) return;
        wire::Reports body;
        EXPECT_TRUE(body.ParseFromString(arrived->message.body));
        // An earlier batch has had its answer.
        EXPECT_LE(body.first(), test.outbox_->told().settled);
        test.largest_ = std::max(test.largest_, arrived->message.body.size());
        ++test.batches_;
        EXPECT_TRUE(inbox.on(*arrived, *node.links, test.timeline_.now()));
      };
    }
    void take(const ReportBatch& batch) {
      for (const std::string& one : batch.reports) reports.push_back(one);
    }

    net::Node node;
    ReportJournal journal;
    std::vector<std::string> reports;
    ReportInbox inbox{[this](const ReportBatch& batch) -> Result<std::string> {
      if (auto kept = journal.append(batch); !kept.ok()) return kept.error();
      take(batch);
      return std::string();
    }};
  };

  void lead() {
    if (lead_ != nullptr && member_ != nullptr) member_->fence(lead_->node.id);
    lead_.reset();
    lead_ = std::make_unique<Lead>(*this, ++leads_);
    if (member_ != nullptr) member_->open(lead_->node);
  }
  void join() {
    member_ = std::make_unique<net::Node>(timeline_, internet_, 7, ++lives_);
    member_->consumes = false;
    member_->on_event = [this](const net::LinkEvent& event) {
      const auto* const arrived = std::get_if<net::Arrived>(&event);
      if (arrived == nullptr) return;
      EXPECT_TRUE(outbox_->on(*arrived, coordinator(), *member_->links, timeline_.now()));
    };
    if (lead_ != nullptr) member_->open(lead_->node);
  }
  [[nodiscard]] net::PeerId coordinator() const { return {NodeId(1), Incarnation(leads_)}; }
  void post(std::size_t count, std::size_t bytes = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      posted_.push_back(std::to_string(posted_.size()) + std::string(bytes, 'x'));
      outbox_->post(posted_.back());
    }
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      if (member_ != nullptr)
        outbox_->tick(member_->id.incarnation, coordinator(), *member_->links, timeline_.now());
    }
  }
  [[nodiscard]] bool settled() const { return outbox_->told().settled == outbox_->told().last; }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  std::shared_ptr<host::SimDisk> disk_ = std::make_shared<host::SimDisk>();
  std::uint64_t leads_ = 0;
  std::uint64_t lives_ = 4;
  std::vector<std::string> posted_;
  std::size_t largest_ = 0;
  std::size_t batches_ = 0;
  std::unique_ptr<Lead> lead_;
  std::unique_ptr<net::Node> member_;
  std::unique_ptr<ReportOutbox> outbox_ = std::make_unique<ReportOutbox>();
};

// Reports come in order, each once, and are then kept no more.
TEST_F(ReportOutboxTest, BringsReportsInOrder) {
  lead();
  join();
  post(3);
  EXPECT_EQ(outbox_->told().last, 3U);
  EXPECT_FALSE(settled());
  run_for(1);
  EXPECT_TRUE(settled());
  for (int i = 0; i < 100; ++i) {
    post(2, static_cast<std::size_t>(i) * 40);
    run_for(0.02);
  }
  run_for(1);
  EXPECT_EQ(lead_->reports, posted_);
  EXPECT_TRUE(settled());
  EXPECT_EQ(outbox_->next_wakeup(), std::nullopt);
}

// A batch has at most 60 KiB. Reports that come while it is under way wait, and go together.
TEST_F(ReportOutboxTest, OneBatchAtATime) {
  lead();
  join();
  internet_.set_rates("m7", {.up_bytes_per_second = 1e6, .down_bytes_per_second = 1e6});
  post(1000, 1000);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t before = outbox_->told().settled;
    run_for(0.01);
    EXPECT_GE(outbox_->told().settled, before);
  }
  EXPECT_EQ(lead_->reports, posted_);
  EXPECT_LE(largest_, kMostBatch);
  EXPECT_GT(largest_, kMostBatch * 9 / 10);
  EXPECT_LE(batches_, 17U);
}

// Nothing is lost or doubled while connections break.
TEST_F(ReportOutboxTest, ConnectionsBreak) {
  lead();
  join();
  for (int i = 0; i < 30; ++i) {
    post(5, 2000);
    run_for(0.05);
    internet_.reset("m1", "m7");
  }
  run_for(20);
  EXPECT_EQ(lead_->reports, posted_);
}

// A coordinator is killed again and again while reports come, and away for a minute. The last one has each
// report once, in order, from its journal and from the member.
TEST_F(ReportOutboxTest, AnotherCoordinator) {
  lead();
  join();
  for (int i = 0; i < 60; ++i) {
    post(4, 300);
    run_for(0.03);
    if (i % 10 == 5) lead();
  }
  member_->fence(lead_->node.id);
  lead_.reset();
  for (int i = 0; i < 60; ++i) {
    post(50);
    run_for(1);
  }
  EXPECT_FALSE(settled());
  lead();
  run_for(20);
  EXPECT_EQ(lead_->reports, posted_);
  EXPECT_TRUE(settled());
  EXPECT_THAT(lead_->inbox.take_remarks(), IsEmpty());
}

// Another life of the process's member brings what is left of the first. Another process begins anew, and
// what the first had not told is gone with it.
TEST_F(ReportOutboxTest, LivesOfAMember) {
  lead();
  join();
  post(2);
  run_for(1);
  post(2);
  lead_->node.fence(member_->id);
  run_for(1);
  join();
  run_for(1);
  EXPECT_EQ(lead_->reports, posted_);
  member_.reset();
  outbox_ = std::make_unique<ReportOutbox>();
  run_for(1);
  join();
  post(3);
  run_for(1);
  EXPECT_EQ(lead_->reports, posted_);
  EXPECT_THAT(lead_->inbox.take_remarks(), IsEmpty());
}

// A batch was under way when its life ended. The next life sends it at once, though its link with the
// coordinator has the same number as that of the life before.
TEST_F(ReportOutboxTest, ALifeEndsWithABatchUnderWay) {
  lead();
  join();
  run_for(1);
  post(2);
  outbox_->tick(member_->id.incarnation, coordinator(), *member_->links, timeline_.now());
  lead_->node.fence(member_->id);
  join();
  run_for(1);
  EXPECT_EQ(lead_->reports, posted_);
  EXPECT_TRUE(settled());
}

// Without a coordinator the oldest reports go first, and what stays has at most so many bytes. Both sides say
// how many were dropped.
TEST_F(ReportOutboxTest, MemoryIsBounded) {
  constexpr std::size_t kMost = 100'000;
  outbox_ = std::make_unique<ReportOutbox>(kMost);
  join();
  post(1000, 1000);
  run_for(1);
  const ReportOutbox::Told told = outbox_->told();
  EXPECT_EQ(told.last, 1000U);
  EXPECT_LE((told.last - told.settled) * 1000, kMost);
  EXPECT_GE((told.last - told.settled) * 1000, kMost * 9 / 10);
  EXPECT_THAT(outbox_->take_remarks(), ElementsAre(HasSubstr(std::to_string(told.settled) + " so far")));
  EXPECT_THAT(outbox_->take_remarks(), IsEmpty());
  post(1, 1000);
  EXPECT_THAT(outbox_->take_remarks(), IsEmpty());  // not one line for each
  lead();
  member_->open(lead_->node);
  run_for(5);
  EXPECT_TRUE(settled());
  ASSERT_EQ(lead_->reports.size(), posted_.size() - told.settled - 1);
  EXPECT_TRUE(std::equal(lead_->reports.begin(), lead_->reports.end(),
                         std::prev(posted_.end(), std::ssize(lead_->reports))));
  EXPECT_THAT(lead_->inbox.take_remarks(), ElementsAre(HasSubstr("reports are missing")));
}

// Claim: a member keeps 16 MiB of reports at most for a coordinator that does not come.
TEST_F(ReportOutboxTest, KeepsSoMuchByItself) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (std::size_t bytes = 0; bytes < 20 * kMiB; bytes += kMostReport)
    outbox_->post(std::string(kMostReport, 'x'));
  const ReportOutbox::Told told = outbox_->told();
  EXPECT_LE((told.last - told.settled) * kMostReport, 16 * kMiB);
  EXPECT_GT((told.last - told.settled) * kMostReport, 15 * kMiB);
}

// A report that is larger than the coordinator takes is dropped, and holds up no other.
TEST_F(ReportOutboxTest, AReportThatIsTooLarge) {
  lead();
  join();
  outbox_->post("before");
  outbox_->post(std::string(kMostReport + 1, 'x'));
  outbox_->post(std::string(kMostReport, 'y'));
  run_for(2);
  EXPECT_THAT(lead_->reports, ElementsAre("before", std::string(kMostReport, 'y')));
  EXPECT_EQ(outbox_->take_remarks().size(), 1U);
}

// While the coordinator's disk is full, reports stay at the member. They come once there is room.
TEST_F(ReportOutboxTest, AFullDisk) {
  lead();
  join();
  post(10, 100);
  run_for(1);
  disk_->restart_count({.capacity_bytes = 2000});
  post(100, 100);
  run_for(12);
  EXPECT_FALSE(settled());
  ASSERT_TRUE(lead_->inbox.failing());
  EXPECT_LT(lead_->reports.size(), posted_.size());
  disk_->restart_count({});
  run_for(6);
  EXPECT_FALSE(lead_->inbox.failing());
  EXPECT_EQ(lead_->reports, posted_);
  lead();
  EXPECT_EQ(lead_->reports, posted_);
}

// Answers about reports that do not exist, or of another life, and answers of other nodes change nothing.
TEST_F(ReportOutboxTest, WrongAnswers) {
  lead();
  join();
  run_for(1);
  disk_->restart_count({.capacity_bytes = 0});
  post(5);
  run_for(1);
  net::Node other(timeline_, internet_, 8, 20);
  other.open(*member_);
  run_for(1);
  const auto answer = [&](net::Node& from, std::uint64_t life, std::uint64_t first) {
    wire::Reports body;
    body.set_kind(wire::Reports::WRITTEN);
    body.set_life(life);
    body.set_first(first);
    for (const std::string& bytes : {body.SerializeAsString(), std::string("\xff\xff")})
      EXPECT_TRUE(
          from.send(member_->id, net::Lane::kControl, {.channel = kReports, .body = bytes, .payload = {}}));
    run_for(0.2);
    return outbox_->told().settled;
  };
  EXPECT_EQ(answer(other, 5, 3), 0U);
  EXPECT_EQ(answer(lead_->node, 4, 3), 0U);
  EXPECT_EQ(answer(lead_->node, 5, 6), 0U);
  EXPECT_EQ(answer(lead_->node, 5, 3), 3U);
  EXPECT_EQ(answer(lead_->node, 5, 2), 3U);
}

}  // namespace
}  // namespace gossamer::node
