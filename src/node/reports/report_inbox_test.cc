// SPDX-License-Identifier: Apache-2.0
#include "node/reports/report_inbox.h"

#include <gmock/gmock.h>
#include <gossamer/reports.pb.h>
#include <gtest/gtest.h>

#include <limits>

#include "net/link/test_simulated_nodes.h"

namespace gossamer::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A coordinator, which is node 1, and node 7, which sends what the test says.
class ReportInboxTest : public net::LinksTest {
 protected:
  ReportInboxTest() {
    coordinator_.consumes = false;
    coordinator_.on_event = [this](const net::LinkEvent& event) {
      if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
        EXPECT_TRUE(inbox_.on(*arrived, *coordinator_.links, timeline_.now()));
      }
    };
    join(member_, coordinator_);
  }

  static wire::Reports batch(std::uint64_t life, std::uint64_t first,
                             const std::vector<std::string>& reports) {
    wire::Reports body;
    body.set_kind(wire::Reports::BATCH);
    body.set_life(life);
    body.set_first(first);
    for (const std::string& one : reports) body.add_reports(one);
    return body;
  }
  // What the coordinator answers: LIFE:FIRST, or nothing.
  std::string answer_to(const std::string& body) {
    const std::size_t before = member_.bodies(net::Lane::kControl).size();
    EXPECT_TRUE(member_.send(coordinator_.id, net::Lane::kControl,
                             {.channel = kReports, .body = body, .payload = {}}));
    run_for(1);
    const auto answers = member_.bodies(net::Lane::kControl);
    if (answers.size() == before) return "";
    wire::Reports answer;
    EXPECT_TRUE(answer.ParseFromString(answers.back()));
    EXPECT_EQ(answer.kind(), wire::Reports::WRITTEN);
    return std::to_string(answer.life()) + ":" + std::to_string(answer.first());
  }
  std::string tell(std::uint64_t life, std::uint64_t first, const std::vector<std::string>& reports) {
    return answer_to(batch(life, first, reports).SerializeAsString());
  }
  // The member sends so many batches at once, each of one report.
  void send(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      EXPECT_TRUE(
          member_.send(coordinator_.id, net::Lane::kControl,
                       {.channel = kReports, .body = batch(5, i, {"x"}).SerializeAsString(), .payload = {}}));
    }
    run_for(0.5);
  }

  std::vector<std::string> written_;  // NODE:NUMBER:REPORT
  bool full_ = false;
  // Whom it blames, and for what, once each.
  std::string blames() {
    std::string all;
    for (const ReportInbox::Blamed& one : inbox_.take_blamed())
      all += std::to_string(one.peer.node.value) + ": " + one.why + "\n";
    return all;
  }
  std::string objection_;
  ReportInbox inbox_{[this](const ReportBatch& batch) -> Result<std::string> {
    if (full_) return Error{.what = "no room"};
    std::uint64_t number = batch.first;
    for (const std::string& one : batch.reports)
      written_.push_back(std::to_string(batch.node.value) + ":" + std::to_string(number++) + ":" + one);
    return objection_;
  }};
  net::Node& coordinator_ = start(1);
  net::Node& member_ = start(7, 5);
};

// New reports are written once, and then acknowledged. Reports that are written already are acknowledged
// again.
TEST_F(ReportInboxTest, WritesEachOnce) {
  EXPECT_EQ(tell(5, 0, {"a", "b"}), "5:2");
  EXPECT_EQ(tell(5, 0, {"a", "b"}), "5:2");
  EXPECT_EQ(tell(5, 1, {"b", "c"}), "5:3");
  EXPECT_EQ(tell(5, 0, {"a"}), "5:3");
  EXPECT_THAT(written_, ElementsAre("7:0:a", "7:1:b", "7:2:c"));
  EXPECT_THAT(inbox_.take_remarks(), IsEmpty());
}

// A gap is told: the member had no room to keep what is missing. The rest counts.
TEST_F(ReportInboxTest, TellsWhatIsMissing) {
  EXPECT_EQ(tell(5, 0, {"a"}), "5:1");
  EXPECT_EQ(tell(5, 41, {"z"}), "5:42");
  EXPECT_THAT(written_, ElementsAre("7:0:a", "7:41:z"));
  EXPECT_THAT(inbox_.take_remarks(), ElementsAre(HasSubstr("node 7: 40 reports are missing")));
}

// A later life of the member has a numbering of its own. Reports of an earlier one are none by then, nor are
// those of a life that this node never had.
TEST_F(ReportInboxTest, EachLifeHasItsNumbers) {
  EXPECT_EQ(tell(3, 0, {"a", "b"}), "3:2");
  EXPECT_EQ(tell(5, 0, {"c"}), "5:1");
  EXPECT_EQ(tell(3, 2, {"d"}), "");
  EXPECT_EQ(tell(6, 0, {"e"}), "");
  EXPECT_EQ(tell(0, 0, {"f"}), "");
  EXPECT_THAT(written_, ElementsAre("7:0:a", "7:1:b", "7:0:c"));
  EXPECT_THAT(blames(), HasSubstr("7: it tells reports that cannot be: reports of life 6"));
}

// What could not be written is neither acknowledged nor counted. It is taken when it comes again.
TEST_F(ReportInboxTest, AFullDiskTakesNothing) {
  EXPECT_EQ(tell(5, 0, {"a"}), "5:1");
  full_ = true;
  EXPECT_EQ(tell(5, 1, {"b"}), "");
  EXPECT_EQ(tell(5, 1, {"b"}), "");
  ASSERT_TRUE(inbox_.failing());
  EXPECT_EQ(inbox_.take_remarks().size(), 1U);
  EXPECT_EQ(tell(5, 0, {"a"}), "5:1");  // this one is written
  full_ = false;
  EXPECT_EQ(tell(5, 1, {"b", "c"}), "5:3");
  EXPECT_FALSE(inbox_.failing());
  EXPECT_THAT(written_, ElementsAre("7:0:a", "7:1:b", "7:2:c"));
}

// Another node's reports cannot be told: a batch belongs to the node that sent it.
TEST_F(ReportInboxTest, NodesAreApart) {
  net::Node& other = start(8, 6);
  join(other, coordinator_);
  EXPECT_EQ(tell(5, 0, {"a"}), "5:1");
  EXPECT_TRUE(
      other.send(coordinator_.id, net::Lane::kControl,
                 {.channel = kReports, .body = batch(5, 1, {"b"}).SerializeAsString(), .payload = {}}));
  run_for(1);
  EXPECT_EQ(tell(5, 1, {"c"}), "5:2");
  EXPECT_THAT(written_, ElementsAre("7:0:a", "8:1:b", "7:1:c"));
}

// What no member sends changes nothing, and its sender is to be blamed.
TEST_F(ReportInboxTest, RefusesWhatCannotBe) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  wire::Reports answer = batch(5, 0, {"a"});
  answer.set_kind(wire::Reports::WRITTEN);
  const std::vector<std::string> bad{
      "",
      "\xff\xff",
      answer.SerializeAsString(),
      batch(5, 0, {}).SerializeAsString(),
      batch(5, kLast, {"a"}).SerializeAsString(),
      batch(5, kLast - 1, {"a", "b"}).SerializeAsString(),
      batch(5, 0, {"a", std::string(kMostReport + 1, 'x')}).SerializeAsString(),
      batch(5, 0, std::vector<std::string>(kMostBatch / kReportCost + 1)).SerializeAsString(),
      batch(5, 0, std::vector<std::string>(32'000)).SerializeAsString()};
  for (const std::string& body : bad) {
    EXPECT_EQ(answer_to(body), "") << body.size();
    EXPECT_THAT(blames(), HasSubstr("7: it tells reports that cannot be")) << body.size();
  }
  EXPECT_THAT(written_, IsEmpty());
  EXPECT_EQ(tell(5, 0, {std::string(kMostReport, 'x')}), "5:1");
  EXPECT_EQ(tell(5, 1, std::vector<std::string>(kMostBatch / kReportCost)), "5:7681");
  EXPECT_EQ(blames(), "");
}

// A report that its reader objects to has its number, and its sender is to be blamed.
TEST_F(ReportInboxTest, ObjectionsAreHandedOn) {
  objection_ = "it tells of step 9, and the run has 5";
  EXPECT_EQ(tell(5, 0, {"a"}), "5:1");
  EXPECT_EQ(blames(), "7: it tells of step 9, and the run has 5\n");
}

// As many batches come through at once as a member can have waiting. A member that sends many more is to
// blame, and what it sends meanwhile is dropped. Other nodes are heard.
TEST_F(ReportInboxTest, TheRateIsBounded) {
  send(0, 400);
  EXPECT_EQ(written_.size(), 400U);
  EXPECT_EQ(blames(), "");
  run_for(10);
  send(400, 10'000);
  EXPECT_LT(written_.size(), 1'000U);
  EXPECT_THAT(blames(), HasSubstr("7: it sends more reports than a member can have"));
  net::Node& other = start(8, 6);
  join(other, coordinator_);
  EXPECT_TRUE(
      other.send(coordinator_.id, net::Lane::kControl,
                 {.channel = kReports, .body = batch(6, 0, {"o"}).SerializeAsString(), .payload = {}}));
  run_for(1);
  EXPECT_EQ(written_.back(), "8:0:o");
}

// Claim: a member may send 100 batches a second for as long as it likes.
TEST_F(ReportInboxTest, TheMeanRateIsHeard) {
  for (std::uint64_t i = 0; i < 20; ++i) send(50 * i, 50);
  EXPECT_EQ(written_.size(), 1000U);
  EXPECT_EQ(blames(), "");
}

// Claim: a member that sends some hundreds too many loses these, and is blamed only for more than a thousand.
TEST_F(ReportInboxTest, BlamesForManyAlone) {
  send(0, 1300);
  EXPECT_LT(written_.size(), 500U);
  EXPECT_EQ(blames(), "");
  send(1300, 2000);
  EXPECT_THAT(blames(), HasSubstr("7: it sends more reports than a member can have"));
}

// Claim: a member with gap after gap does not fill the log. The 1st, 2nd, 4th, 8th and 16th are told.
TEST_F(ReportInboxTest, GapsDoNotFillTheLog) {
  for (std::uint64_t i = 1; i <= 20; ++i) tell(5, 10 * i, {"x"});
  EXPECT_EQ(written_.size(), 20U);
  EXPECT_EQ(inbox_.take_remarks().size(), 5U);
}

// Batches of earlier processes count once, also where a failed write was repeated, and the numbers go on
// behind them.
TEST_F(ReportInboxTest, GoesOnBehindEarlierProcesses) {
  const auto before = [&](std::uint64_t life, std::uint64_t first, std::vector<std::string> reports) {
    const auto fresh = inbox_.written_before(
        {.node = NodeId(7), .life = Incarnation(life), .first = first, .reports = std::move(reports)});
    return fresh ? fresh->reports : std::vector<std::string>();
  };
  EXPECT_THAT(before(3, 0, {"a", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(before(3, 0, {"a", "b"}), IsEmpty());
  EXPECT_THAT(before(3, 1, {"b", "c"}), ElementsAre("c"));
  EXPECT_THAT(before(5, 0, {"d"}), ElementsAre("d"));
  EXPECT_THAT(before(3, 3, {"e"}), IsEmpty());
  EXPECT_EQ(tell(5, 0, {"d", "e"}), "5:2");
  EXPECT_THAT(written_, ElementsAre("7:1:e"));
}

}  // namespace
}  // namespace gossamer::node
