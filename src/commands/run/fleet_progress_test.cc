// SPDX-License-Identifier: Apache-2.0
#include "commands/run/fleet_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "host/api/durable_directories.h"
#include "net/link/test_simulated_nodes.h"
#include "node/reports/report_outbox.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSteps = 1000;

// A run of 1000 steps of which nothing else is known.
class NoTraining final : public LedTraining {
 public:
  [[nodiscard]] std::optional<DeliveredFile> read_delivered(std::string_view) const override { return {}; }
  [[nodiscard]] Result<void> check_delivered(const std::string&, const DeliveredFile&,
                                             std::span<const Owned>) const override {
    return {};
  }
  [[nodiscard]] Facts led_facts() const override {
    return {.run_id = "r", .fingerprint = "f", .steps = kSteps, .batch = 2, .samples = 20};
  }
  Result<Start> find_start(EventSink) override { return Start(); }
  Result<DoneSteps> take_trained(const engine::TrainHooks&) override { return DoneSteps(); }
  [[nodiscard]] std::optional<tensors::CheckpointInfo> checkpoint(StepNumber) const override {
    return std::nullopt;
  }
  Result<Led> lead(const FleetWanted&) override { return Led(); }
  Result<bool> delivered(std::size_t) override { return false; }
  [[nodiscard]] std::size_t parts() const override { return 0; }
  Result<void> take_delivered() override { return {}; }
};

// Two members, nodes 7 and 8, and leads, which are node 1.
class FleetProgressTest : public ::testing::Test {
 protected:
  struct Member {
    Member(host::Timeline& timeline, host::SimInternet& internet, std::uint64_t number)
        : node(timeline, internet, number, number) {}
    net::Node node;
    node::ReportOutbox outbox;
  };
  struct Lead {
    Lead(FleetProgressTest& test, std::uint64_t incarnation)
        : node(test.timeline_, test.internet_, 1, incarnation),
          progress(test.host_, "/run", test.training_, test.hooks_) {
      if (test.owners_ != nullptr) progress.judge_by(*test.owners_);
      const auto read = progress.read();
      EXPECT_TRUE(read.ok()) << read.error().message();
      node.consumes = false;
      node.on_event = [this, &test](const net::LinkEvent& event) {
        if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
          EXPECT_TRUE(progress.reports().on(*arrived, *node.links, test.timeline_.now()));
        }
      };
    }
    net::Node node;
    FleetProgress progress;
  };

  FleetProgressTest() {
    for (const std::uint64_t number : {7U, 8U}) {
      auto& member = members_[number];
      member = std::make_unique<Member>(timeline_, internet_, number);
      member->node.consumes = false;
      member->node.on_event = [this, &member = *member](const net::LinkEvent& event) {
        if (const auto* const arrived = std::get_if<net::Arrived>(&event)) {
          EXPECT_TRUE(member.outbox.on(*arrived, coordinator(), *member.node.links, timeline_.now()));
        }
      };
    }
  }
  void kill() {
    for (auto& [number, member] : members_) member->node.fence(lead_->node.id);
    lead_.reset();
  }
  void lead() {
    seen_.clear();
    events_.clear();
    lead_ = std::make_unique<Lead>(*this, ++leads_);
    for (auto& [number, member] : members_) member->node.open(lead_->node);
  }
  [[nodiscard]] net::PeerId coordinator() const { return {NodeId(1), Incarnation(leads_)}; }
  void tell(const MemberReport& report) {
    for (auto& [number, member] : members_) member->outbox.post(report_bytes(report));
  }
  void step() {
    for (auto& [number, member] : members_) {
      member->outbox.post(report_bytes(engine::MemberStep{.epoch = Epoch(1),
                                                          .step = StepNumber(done_),
                                                          .rank = number - 7,
                                                          .members = 2,
                                                          .loss = static_cast<double>(done_),
                                                          .sent = {.steps = 10 * (done_ + 1)}}));
    }
    ++done_;
  }
  void run_for(double seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      timeline_.run_until(timeline_.now() + from_seconds(0.01));
      for (auto& [number, member] : members_) {
        if (number == away_) continue;
        member->outbox.tick(member->node.id.incarnation, coordinator(), *member->node.links, timeline_.now());
      }
    }
  }
  // The steps that this lead has handed on: 0 1 2 ... where none is missing or doubled.
  void expect_all_steps() {
    std::vector<std::uint64_t> all(done_);
    std::iota(all.begin(), all.end(), 1U);
    EXPECT_EQ(seen_, all);
  }

  host::Timeline timeline_{3};
  host::SimInternet internet_{timeline_, 3};
  run::testing::SimMachine machine_;
  const run::NodeHost host_ = machine_.host();
  NoTraining training_;
  const OwnerBook* owners_ = nullptr;
  std::vector<std::uint64_t> seen_;
  std::vector<std::string> events_;
  const std::function<void(const engine::TrainProgress&)> on_step_ =
      [this](const engine::TrainProgress& progress) { seen_.push_back(progress.steps_done); };
  const std::function<bool()> never_ = [] { return false; };
  const std::function<void(std::string_view, EventFields)> on_event_ =
      [this](std::string_view name, EventFields) { events_.emplace_back(name); };
  const engine::TrainHooks hooks_{.on_step = on_step_, .stop_requested = never_, .events = on_event_};
  std::map<std::uint64_t, std::unique_ptr<Member>> members_;
  std::unique_ptr<Lead> lead_;
  std::uint64_t leads_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t away_ = 0;  // the member that tells nothing at present
};

// Steps are handed on once, in order, as members tell of them. A recovery counts once, and a failed
// checkpoint and a damaged file are told for each member.
TEST_F(FleetProgressTest, HandsOnWhatMembersTell) {
  lead();
  for (int i = 0; i < 20; ++i) {
    step();
    run_for(0.05);
    lead_->progress.tell_steps();
  }
  tell(engine::FleetRecovery{.epoch = Epoch(2),
                             .step = StepNumber(15),
                             .cause = "node 9 was lost",
                             .total = from_seconds(2),
                             .detect = {},
                             .agree = {},
                             .load = {},
                             .replay = {}});
  tell(FailedCheckpoint{.step = StepNumber(16), .error = "no room"});
  tell(DamagedFile{.file = "a.part", .error = "a wrong checksum"});
  run_for(1);
  lead_->progress.tell_steps();
  lead_->progress.tell_recoveries(FleetProgress::Until::kNow);
  lead_->progress.tell_recoveries(FleetProgress::Until::kEnd);
  expect_all_steps();
  EXPECT_THAT(events_, ElementsAre("checkpoint_failed", "checkpoint_failed", "checkpoint_damaged",
                                   "checkpoint_damaged", "recovery"));
  StepsCost cost;
  lead_->progress.add_to(cost);
  EXPECT_EQ(cost.step_bytes, 10);
  EXPECT_EQ(cost.recoveries.size(), 1U);
}

// Leads are killed, at any moment, and are away for a minute, while members go on. The last lead knows every
// step once, the last hundred losses, bytes and recoveries, as one that was never killed.
TEST_F(FleetProgressTest, LeadsThatAreKilledLoseNothing) {
  lead();
  for (int i = 0; i < 100; ++i) {
    step();
    if (i == 30) {
      tell(engine::FleetRecovery{.epoch = Epoch(2),
                                 .step = StepNumber(20),
                                 .cause = "node 9 was lost",
                                 .total = from_seconds(2),
                                 .detect = {},
                                 .agree = {},
                                 .load = {},
                                 .replay = {}});
    }
    run_for(0.02);
    if (i % 3 == 0) lead_->progress.tell_steps();
    if (i % 7 != 6) continue;
    kill();
    lead();
  }
  kill();
  for (int i = 0; i < 60; ++i) {
    for (int each = 0; each < 5; ++each) step();
    run_for(1);
  }
  lead();
  lead_->progress.tell_steps();
  EXPECT_LT(seen_.size(), done_);
  run_for(10);
  lead_->progress.tell_steps();
  lead_->progress.tell_recoveries(FleetProgress::Until::kEnd);
  expect_all_steps();
  EXPECT_EQ(lead_->progress.done().final_loss, 2 * 349.5);  // the mean of steps 300 to 399, told by two
  StepsCost cost;
  lead_->progress.add_to(cost);
  EXPECT_EQ(cost.step_bytes, 10);
  EXPECT_EQ(cost.recoveries.size(), 1U);
}

// The next lead knows what the one before has told of, and tells it no more. It counts all the same. A
// recovery that no step has followed yet was not told.
TEST_F(FleetProgressTest, WhatWasToldIsNotToldAgain) {
  const auto recovered = [this](std::uint64_t epoch) {
    tell(engine::FleetRecovery{.epoch = Epoch(epoch),
                               .step = StepNumber(done_),
                               .cause = "node 9 was lost",
                               .total = from_seconds(2),
                               .detect = {},
                               .agree = {},
                               .load = {},
                               .replay = {}});
  };
  const auto look = [this] {
    run_for(1);
    lead_->progress.tell_steps();
    lead_->progress.tell_recoveries(FleetProgress::Until::kNow);
  };
  lead();
  for (int i = 0; i < 5; ++i) step();
  recovered(2);
  tell(FailedCheckpoint{.step = StepNumber(4), .error = "no room"});
  tell(DamagedFile{.file = "a.part", .error = "a wrong checksum"});
  for (int i = 0; i < 5; ++i) step();
  recovered(3);
  look();
  EXPECT_THAT(events_, ElementsAre("checkpoint_failed", "checkpoint_failed", "checkpoint_damaged",
                                   "checkpoint_damaged", "recovery"));
  kill();
  lead();
  look();
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_THAT(lead_->progress.not_saved(StepNumber(4)).got, "no room");
  for (int i = 0; i < 3; ++i) step();
  look();
  EXPECT_THAT(events_, ElementsAre("recovery"));
  StepsCost cost;
  lead_->progress.add_to(cost);
  EXPECT_EQ(cost.recoveries.size(), 2U);
}

// A member that was fenced tells of its last steps when the others have gone on. They are told in their place
// at the end, with what comes behind them. A step that it never tells of stays out.
TEST_F(FleetProgressTest, StepsThatAreToldLate) {
  lead();
  for (int i = 0; i < 5; ++i) step();
  run_for(1);
  lead_->progress.tell_steps();
  away_ = 8;
  for (int i = 0; i < 20; ++i) step();
  members_[7]->outbox.post(report_bytes(engine::MemberStep{
      .epoch = Epoch(1), .step = StepNumber(25), .rank = 0, .members = 2, .loss = 25, .sent = {}}));
  members_[7]->outbox.post(report_bytes(engine::MemberStep{
      .epoch = Epoch(2), .step = StepNumber(26), .rank = 0, .members = 1, .loss = 26, .sent = {}}));
  run_for(1);
  lead_->progress.tell_steps();
  EXPECT_THAT(seen_, ElementsAre(1, 2, 3, 4, 5, 27));
  away_ = 0;
  run_for(1);
  lead_->progress.tell_steps();
  EXPECT_EQ(seen_.size(), 6U);
  seen_.clear();
  lead_->progress.tell_late_steps();
  std::vector<std::uint64_t> late(20);
  std::iota(late.begin(), late.end(), 6U);
  late.push_back(27);
  EXPECT_EQ(seen_, late);
  EXPECT_EQ(lead_->progress.steps(), 27U);
  EXPECT_EQ(lead_->progress.done().final_loss, (2 * 300 + 26) / 26.0);
  lead_->progress.tell_late_steps();
  EXPECT_EQ(seen_, late);
  kill();
  lead();
  EXPECT_EQ(seen_.size(), 26U);
}

// A torn tail of the journal is told and cut off. Reports that no lead has acknowledged come again.
TEST_F(FleetProgressTest, ATornJournal) {
  lead();
  for (int i = 0; i < 10; ++i) {
    step();
    run_for(0.05);
  }
  kill();
  const std::string bytes = *host::read_text(machine_.disk, "/run/nodes/reports");
  ASSERT_TRUE(host::replace_file(machine_.disk, "/run/nodes/reports", bytes + "torn").ok());
  step();
  lead();
  run_for(1);
  lead_->progress.tell_steps();
  expect_all_steps();
  EXPECT_TRUE(machine_.said("4 bytes at the end of /run/nodes/reports were no reports"));
}

// Claim: reports that are none, and steps that the run does not have, count for nothing. Both are the fault
// of each member that sent them.
TEST_F(FleetProgressTest, WhatCannotBeCountsForNothing) {
  lead();
  step();
  const auto expect_blame = [&](const std::string& why) {
    std::vector<std::uint64_t> nodes;
    for (const auto& one : lead_->progress.reports().take_blamed()) {
      EXPECT_THAT(one.why, HasSubstr(why));
      nodes.push_back(one.peer.node.value);
    }
    EXPECT_THAT(nodes, ::testing::UnorderedElementsAre(7, 8));
  };
  for (auto& [number, member] : members_) {
    member->outbox.post("");
    member->outbox.post("\xff\xff");
  }
  run_for(1);
  expect_blame("no report");
  tell(engine::MemberStep{
      .epoch = Epoch(1), .step = StepNumber(kSteps), .rank = 0, .members = 1, .loss = 0, .sent = {}});
  run_for(1);
  expect_blame("it tells of " + std::to_string(kSteps + 1) + " steps");
  step();
  run_for(1);
  lead_->progress.tell_steps();
  expect_all_steps();
  EXPECT_THAT(events_, IsEmpty());
}

// What one member tells of steps that are not marked is handed on once they are marked, and never before. Its
// reports of steps that the run does not have are its fault, and so is what a node tells that owns nothing.
TEST_F(FleetProgressTest, JudgesByTheBooks) {
  OwnerBook owners(machine_.disk, training_, "/run/nodes/owners");
  cluster::View view;
  cluster::HoldingMap holdings{{placement::ThingId(0), NodeId(7)}};
  const std::string decision;
  const std::array<cluster::TrackId, 1> tracks{cluster::TrackId(0)};
  std::optional<cluster::MarkLedger> marks(std::in_place, tracks);
  const auto look = [&] {
    owners.look(LeadBooks{
        .view = view, .holdings = holdings, .decision = decision, .marks = marks, .installed = Epoch(1)});
  };
  look();
  owners_ = &owners;
  lead();
  const auto blames = [&] {
    std::vector<std::string> all;
    for (const auto& one : lead_->progress.reports().take_blamed())
      all.push_back(std::to_string(one.peer.node.value) + " " + one.why);
    return all;
  };
  const auto alone = [](std::uint64_t step) {
    return report_bytes(engine::MemberStep{
        .epoch = Epoch(1), .step = StepNumber(step), .rank = 0, .members = 1, .loss = 2, .sent = {}});
  };
  for (const std::uint64_t done : {0U, 1U, 5U}) members_[7]->outbox.post(alone(done));
  run_for(1);
  EXPECT_THAT(blames(), IsEmpty());
  lead_->progress.tell_steps(owners.committed());
  EXPECT_THAT(seen_, IsEmpty());
  static_cast<void>(marks->applied({.track = tracks[0], .by = Incarnation(7), .next = StepNumber(2)}));
  look();
  lead_->progress.tell_steps(owners.committed());
  EXPECT_EQ(seen_, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(lead_->progress.steps(), 2U);
  members_[8]->outbox.post(alone(2));
  members_[7]->outbox.post(alone(kSteps));
  run_for(1);
  EXPECT_THAT(blames(), ::testing::UnorderedElementsAre(
                            "8 it tells of steps, and owns no part of the run",
                            HasSubstr("7 it tells of " + std::to_string(kSteps + 1) + " steps")));
  lead_->progress.tell_steps(owners.committed());
  EXPECT_EQ(lead_->progress.steps(), 2U);
}

// The lead says no more of a recovery than what has become of members that it knows.
TEST_F(FleetProgressTest, CausesAreKnown) {
  OwnerBook owners(machine_.disk, training_, "/run/nodes/owners");
  std::map<NodeId, membership::MemberRecord> records;
  for (const std::uint64_t node : {7U, 8U}) {
    records[NodeId(node)].set_node(node);
    records[NodeId(node)].set_incarnation(node);
    if (node == 7) records[NodeId(node)].set_name("box");
  }
  const cluster::View view(Epoch(1), std::move(records), {});
  const cluster::HoldingMap holdings;
  const std::optional<cluster::MarkLedger> marks;
  const std::string decision;
  owners.look(LeadBooks{
      .view = view, .holdings = holdings, .decision = decision, .marks = marks, .installed = Epoch(1)});
  owners_ = &owners;
  lead();
  std::uint64_t epoch = 1;
  for (const char* const cause :
       {"box was lost, node 8 joined", "parts were dealt anew", "gossamer: all is well", "gossamer was lost",
        "box was lost, all is well"}) {
    engine::FleetRecovery recovery;
    recovery.epoch = Epoch(++epoch);
    recovery.step = StepNumber(1);
    recovery.cause = cause;
    recovery.total = {1'000'000'000};
    members_[7]->outbox.post(report_bytes(recovery));
  }
  run_for(1);
  lead_->progress.tell_recoveries(FleetProgress::Until::kEnd);
  EXPECT_TRUE(machine_.said("box was lost, node 8 joined: it cost 1.00 s"));
  EXPECT_TRUE(machine_.said("parts were dealt anew: it cost"));
  EXPECT_TRUE(machine_.said("the members changed: it cost"));
  EXPECT_FALSE(machine_.said("all is well"));
  EXPECT_FALSE(machine_.said("gossamer was lost"));
}

// A loss of power costs no step of which the lead was told a second before, or earlier.
TEST_F(FleetProgressTest, ALossOfPowerCostsASecond) {
  ASSERT_TRUE(host::make_durable_directories(machine_.disk, "/run/nodes/parts").ok());
  lead();
  lead_->progress.sync_by([](const auto& work, const auto& then) {
    work();
    then(Instant());
  });
  std::uint64_t old = 0;
  for (int i = 0; i < 40; ++i) {
    if (i == 30) old = done_;
    step();
    run_for(0.1);
    lead_->progress.sync_reports(timeline_.now());
  }
  EXPECT_GE(old, 30U);
  const auto left = machine_.disk.after_crash();
  const run::NodeHost host = machine_.host_with(*left);
  seen_.clear();
  FleetProgress next(host, "/run", training_, hooks_);
  ASSERT_TRUE(next.read().ok());
  EXPECT_GE(seen_.size(), old);
  EXPECT_EQ(seen_.size(), next.steps()) << "no step is missing in the middle";
}

}  // namespace
}  // namespace gossamer::commands
