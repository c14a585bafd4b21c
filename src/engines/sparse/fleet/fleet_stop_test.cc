// SPDX-License-Identifier: Apache-2.0
//
// A run that is told to end while its view changes, or whose processes die while it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engines/sparse/fleet/fleet_engine.h"
#include "host/sim/disk.h"
#include "simulation/sparse/sparse_fleet.h"
#include "simulation/sparse/tiny_problem.h"

namespace gossamer::sparse_engine {
namespace {

using simulation::SparseFleet;
using simulation::TinyProblem;

enum class ViewChangedBy { kJoin, kDrain, kDeath };

// A fleet of three that has taken 20 steps, and notes how far any of its members has come.
class StoppedFleet {
 public:
  struct Kept {
    std::uint64_t checkpoint_every = 0;
    std::size_t copies = 2;
    std::uint64_t steps = 10000;
  };
  explicit StoppedFleet(std::uint64_t seed) : StoppedFleet(seed, Kept{}) {}
  StoppedFleet(std::uint64_t seed, const Kept& kept)
      : options_{.features = 24,
                 .labels = 40,
                 .hidden = 64,
                 .samples = 6,
                 .steps = kept.steps,
                 .disk = &disk_,
                 .checkpoint_every = kept.checkpoint_every,
                 .delivered = [this](NodeId node) { delivered_.insert(node); }},
        problem_(options_),
        fleet_(problem_, {.first_members = 3,
                          .copies = kept.copies,
                          .seed = seed,
                          .longest_work = from_milliseconds(20),
                          .path = {.delay = from_milliseconds(5)}}) {
    while (!fleet_.step() || *fleet_.step() < StepNumber(20)) run_for(0.01);
  }
  void run_for(double seconds) {
    for (double past = 0; past < seconds; past += 0.001) {
      fleet_->run_for(0.001);
      for (const auto& [machine, member] : fleet_->members())
        reached_ = std::max(reached_, fleet_.engine(machine).step().value_or(StepNumber()));
      note_who_left();
    }
  }
  // Returns once the coordinator has begun to change the view.
  void change_view(ViewChangedBy cause) {
    const Epoch before = fleet_->durable().begun();
    if (cause == ViewChangedBy::kJoin) fleet_.join();
    if (cause == ViewChangedBy::kDrain) fleet_->member("m2").drain("it was told to");
    if (cause == ViewChangedBy::kDeath) fleet_->kill("m2");
    while (fleet_->durable().begun() == before) run_for(0.001);
    changed_from_ = before;
    recoveries_ = recoveries();
  }
  [[nodiscard]] std::uint64_t recoveries() { return fleet_.engine("m1").fleet_counters().recoveries; }
  // How far the change of change_view() has come at the first member.
  [[nodiscard]] std::string moment() {
    if (fleet_->durable().installed() <= changed_from_) return "begun";
    return recoveries() > recoveries_ ? "recovered" : "installed";
  }
  // Nobody leads any more, and members have noticed.
  void lose_the_coordinator() {
    fleet_->kill_coordinator_for("c1", from_seconds(3600));
    run_for(11);
  }
  // As a node does that is to go while nobody leads. Returns once all have gone, at the latest after 200 s.
  void all_leave_alone() {
    for (const auto& [machine, member] : fleet_->members()) member->save_and_leave("it was told to");
    for (int i = 0; i < 200 && !all_gone(); ++i) run_for(1);
  }
  // Whether members that hold something have not applied the same steps.
  [[nodiscard]] bool are_apart() {
    std::set<StepNumber> steps;
    for (const auto& [machine, member] : fleet_->members()) {
      if (const auto step = fleet_.engine(machine).step()) steps.insert(*step);
    }
    return steps.size() > 1;
  }
  [[nodiscard]] bool all_gone() {
    return std::ranges::all_of(fleet_->members(), [](const auto& one) { return one.second->done(); });
  }
  // Nodes that have delivered their part of the trained network.
  [[nodiscard]] const std::set<NodeId>& delivered() const { return delivered_; }
  // Whether more nodes had left than had delivered, at any moment.
  [[nodiscard]] bool left_undelivered() const { return left_undelivered_; }
  [[nodiscard]] StepNumber reached() const { return reached_; }
  // The step from which the run goes on.
  [[nodiscard]] StepNumber resumes_at() const { return TinyProblem(options_).start(); }
  // Others go on from there.
  void expect_to_go_on() {
    const TinyProblem problem(options_);
    SparseFleet next(problem, {.first_members = 2});
    next->run_for(5);
    EXPECT_EQ(next->failure(), std::nullopt);
    EXPECT_GT(next.step().value_or(StepNumber()), problem.start());
  }
  [[nodiscard]] SparseFleet& fleet() { return fleet_; }

 private:
  void note_who_left() {
    const auto left =
        std::ranges::count_if(fleet_->members(), [](const auto& one) { return one.second->done(); });
    left_undelivered_ = left_undelivered_ || static_cast<std::size_t>(left) > delivered_.size();
  }

  host::SimDisk disk_;
  std::set<NodeId> delivered_;
  bool left_undelivered_ = false;
  TinyProblem::Options options_;
  TinyProblem problem_;
  SparseFleet fleet_;
  StepNumber reached_;
  Epoch changed_from_;
  std::uint64_t recoveries_ = 0;
};

// Claim: a run that is told to end at any moment of a change of its view saves the same step at all members,
// and loses none. It does not matter why the view changes, nor that members come to rest a step apart.
TEST(FleetStop, WhileTheViewChanges) {
  for (const auto cause : {ViewChangedBy::kJoin, ViewChangedBy::kDrain, ViewChangedBy::kDeath}) {
    std::map<std::string, int> met;
    for (std::uint64_t after = 0; after < 40; ++after) {
      SCOPED_TRACE(::testing::Message() << "cause " << static_cast<int>(cause) << ", " << after << " x 5 ms");
      StoppedFleet run(after);
      run.change_view(cause);
      run.run_for(0.005 * static_cast<double>(after));
      ++met[run.moment()];
      run.fleet()->stop("enough");
      for (int i = 0; i < 300 && !run.all_gone(); ++i) run.run_for(0.1);
      EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
      EXPECT_EQ(run.fleet()->failure(), std::nullopt);
      EXPECT_EQ(run.resumes_at(), run.reached());
    }
    for (const char* const moment : {"begun", "installed", "recovered"}) EXPECT_GE(met[moment], 3) << moment;
  }
}

// Claim: members whose coordinator dies while the view changes come to rest a step apart. If all are told to
// leave then, they save the same step and lose none. It does not matter which of them knew of the change.
TEST(FleetStop, AllLeaveInAChangeThatNobodyEnds) {
  std::uint64_t apart = 0;
  for (const auto cause : {ViewChangedBy::kJoin, ViewChangedBy::kDrain}) {
    for (std::uint64_t after = 0; after < 40; ++after) {
      SCOPED_TRACE(::testing::Message() << "cause " << static_cast<int>(cause) << ", " << after << " x 3 ms");
      StoppedFleet run(after);
      run.fleet()->internet().set_path("c1", "m1", {.delay = from_milliseconds(25)});
      run.change_view(cause);
      run.run_for(0.003 * static_cast<double>(after));
      run.lose_the_coordinator();
      apart += run.are_apart() ? 1 : 0;
      run.all_leave_alone();
      EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
      EXPECT_EQ(run.fleet()->failure(), std::nullopt);
      EXPECT_GE(run.resumes_at(), run.reached());
    }
  }
  EXPECT_GT(apart, 5U);
}

// Claim: a view may change again when pieces have moved, and members have not all told so. If nobody leads
// then, and all are told to leave, what they save is of one step, and of the parts that they have now. What
// others had given for their parts of before is not applied to these. It is not so where the recovery had
// ended at m1, which gives a piece away, and not at m4, which gets it ("Leaving at rest" lists such losses).
TEST(FleetStop, AllLeaveWhenPiecesHaveJustMoved) {
  std::size_t moved = 0;
  std::size_t split = 0;
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 4 ms");
    StoppedFleet run(after);
    run.fleet()->internet().set_path("m1", "m3", {.delay = from_milliseconds(60)});
    const std::uint64_t before = run.recoveries();
    run.change_view(ViewChangedBy::kJoin);
    const Epoch first = run.fleet()->durable().begun();
    while (run.fleet()->durable().installed() < first) run.run_for(0.001);
    run.run_for(0.004 * static_cast<double>(after));
    run.change_view(ViewChangedBy::kDrain);
    run.run_for(0.012);
    run.lose_the_coordinator();
    const auto taken = run.fleet().engine("m1").taken_up();
    moved += taken && taken->epoch == first && taken->recovered && run.recoveries() == before ? 1 : 0;
    const auto given = run.fleet().engine("m4").taken_up();
    const bool apart = taken && given && taken->recovered && !given->recovered;
    run.all_leave_alone();
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.fleet()->failure(), std::nullopt) << *run.fleet()->failure();
    if (apart) {
      ++split;
      continue;
    }
    EXPECT_GE(run.resumes_at(), run.reached());
    run.expect_to_go_on();
  }
  EXPECT_GT(moved, 5U);
  EXPECT_LE(split, 6U);
}

// Claim: a run that is told to end within its very last step is trained, so all members deliver their parts
// before they leave. Before that step they save, and none delivers.
TEST(FleetStop, WithinTheLastStep) {
  constexpr std::uint64_t kSteps = 40;
  std::uint64_t trained = 0;
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 2 ms");
    StoppedFleet run(after, {.steps = kSteps});
    while (run.reached() < StepNumber(kSteps - 2)) run.run_for(0.001);
    run.run_for(0.002 * static_cast<double>(after));
    run.fleet()->stop("enough");
    for (int i = 0; i < 1000 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.fleet()->failure(), std::nullopt);
    if (run.reached() == StepNumber(kSteps)) {
      ++trained;
      EXPECT_EQ(run.delivered().size(), 3U);
      EXPECT_FALSE(run.left_undelivered());
    } else {
      EXPECT_EQ(run.resumes_at(), run.reached());
      EXPECT_TRUE(run.delivered().empty());
    }
  }
  EXPECT_GT(trained, 5U);
  EXPECT_LT(trained, 60U);
}

// Claim: members that come to rest at the end of a run while nobody leads deliver their parts, or save, all
// the same, when they are told to leave. None that has a trained part leaves before it is delivered.
TEST(FleetStop, AllLeaveWithinTheLastStep) {
  constexpr std::uint64_t kSteps = 40;
  std::uint64_t late = 0;
  std::uint64_t saved = 0;
  for (const std::uint64_t before : {2U, 1U}) {
    for (std::uint64_t after = 0; after < 60; ++after) {
      SCOPED_TRACE(::testing::Message() << before << " steps, " << after << " x 3 ms");
      StoppedFleet run(after, {.steps = kSteps});
      while (run.reached() < StepNumber(kSteps - before)) run.run_for(0.001);
      run.fleet()->internet().set_path("c1", "m1", {.delay = from_milliseconds(25)});
      run.change_view(ViewChangedBy::kJoin);
      run.run_for(0.003 * static_cast<double>(after));
      run.lose_the_coordinator();
      const bool trained = run.reached() == StepNumber(kSteps);
      late += trained && run.delivered().size() < 3 ? 1 : 0;
      run.all_leave_alone();
      EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
      EXPECT_EQ(run.fleet()->failure(), std::nullopt);
      if (trained || !run.delivered().empty()) {
        EXPECT_GE(run.delivered().size(), 3U);
      } else {
        ++saved;
        EXPECT_GE(run.resumes_at(), run.reached());
      }
    }
  }
  EXPECT_GT(late, 3U);
  EXPECT_GT(saved, 0U);
}

// Claim: a run that is told to end while its coordinator is cut off from all members loses no step. They
// train on, and hear of the end when the network is back. It does not matter whether this coordinator has
// ever heard them.
TEST(FleetStop, WhileTheCoordinatorIsCutOff) {
  for (const bool taken_over : {false, true}) {
    SCOPED_TRACE(taken_over);
    StoppedFleet run(1);
    run.fleet()->cut_off_for("c1", from_seconds(60));
    if (taken_over) run.fleet()->kill_coordinator_for("c1", from_seconds(1));
    run.run_for(15);
    run.fleet()->stop("enough");
    run.run_for(30);
    const StepNumber then = run.reached();
    run.run_for(10);  // at 55 s of 60
    EXPECT_FALSE(run.all_gone());
    EXPECT_GT(run.reached(), then);
    run.run_for(10);
    for (int i = 0; i < 300 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.fleet()->failure(), std::nullopt);
    EXPECT_EQ(run.resumes_at(), run.reached());
  }
}

// Claim: a member that is killed between the word that the run ends and the step on which all agree costs no
// step, nor one that is killed when it has saved. The others take over what it held, and save once more.
TEST(FleetStop, AMemberIsKilledBeforeTheAgreedStep) {
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 3 ms");
    StoppedFleet run(after);
    run.fleet()->stop("enough");
    run.run_for(0.003 * static_cast<double>(after));
    run.fleet()->kill("m2");
    for (int i = 0; i < 1000 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.fleet()->failure(), std::nullopt);
    EXPECT_EQ(run.resumes_at(), run.reached());
    run.expect_to_go_on();
  }
}

// Claim: without copies such a death costs at most the steps since the newest checkpoint. The others leave,
// and any members can go on.
TEST(FleetStop, AMemberWithoutCopiesIsKilledBeforeTheAgreedStep) {
  constexpr std::uint64_t kEvery = 8;
  std::uint64_t lost = 0;
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 3 ms");
    StoppedFleet run(after, {.checkpoint_every = kEvery, .copies = 0});
    run.fleet()->stop("enough");
    run.run_for(0.003 * static_cast<double>(after));
    run.fleet()->kill("m2");
    for (int i = 0; i < 1000 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_LE(run.resumes_at(), run.reached());
    EXPECT_GE(run.resumes_at().value + kEvery, run.reached().value);
    lost += run.resumes_at() < run.reached() ? 1 : 0;
    run.expect_to_go_on();
  }
  EXPECT_GT(lost, 5U) << "some are killed before they have saved";
  EXPECT_LT(lost, 55U) << "some are killed afterwards";
}

// Claim: a run that is told to end just after a member was killed loses no step, once its connection has
// closed. What it held is made good before all save.
TEST(FleetStop, AMemberWasKilledJustBefore) {
  for (std::uint64_t after = 4; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 5 ms");
    StoppedFleet run(after);
    run.fleet()->kill("m2");
    run.run_for(0.005 * static_cast<double>(after));
    run.fleet()->stop("enough");
    for (int i = 0; i < 300 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.fleet()->failure(), std::nullopt);
    EXPECT_EQ(run.resumes_at(), run.reached());
  }
}

// Claim: a coordinator that is killed at any moment after it was told to end the run costs no step. The next
// one ends the run, if the first had written so. It does not matter whether the view was changing.
TEST(FleetStop, TheCoordinatorIsKilledBeforeTheAgreedStep) {
  std::uint64_t taken_up = 0;
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 3 ms");
    StoppedFleet run(after);
    if (after % 2 == 0) run.change_view(ViewChangedBy::kJoin);
    run.fleet()->stop("enough");
    const std::uint64_t pair = after / 2;
    run.run_for(0.003 * static_cast<double>(pair));
    run.fleet()->kill_coordinator_for("c1", from_seconds(2));
    run.run_for(3);
    if (run.fleet()->durable().stopping()) {
      ++taken_up;
    } else {
      run.fleet()->stop("once more");
    }
    for (int i = 0; i < 1000 && !run.all_gone(); ++i) run.run_for(0.1);
    EXPECT_TRUE(run.all_gone()) << run.fleet()->log();
    EXPECT_EQ(run.resumes_at(), run.reached());
  }
  EXPECT_GT(taken_up, 30U);
}

// Claim: a member that has halted waits for the others for 10 s and four steps. Where steps are long, others
// may need so long for the same one.
TEST(FleetStop, HaltedMembersWaitAsLongAsStepsTake) {
  host::SimDisk disk;
  const TinyProblem problem({.steps = 10000, .snapshot_every = 1000, .disk = &disk});
  SparseFleet fleet(problem, {.first_members = 3, .longest_work = Duration{1}});
  while (!fleet.step() || *fleet.step() < StepNumber(20)) fleet->run_for(0.01);
  for (const char* const other : {"m1", "m2"}) {
    fleet->internet().set_path("m3", other, {.delay = from_seconds(1)});
    fleet->internet().set_path(other, "m3", {.delay = from_seconds(1)});
  }
  fleet->run_for(20);
  fleet->stop("enough");
  const auto step = [&](const std::string& machine) { return fleet.engine(machine).step(); };
  const auto before = step("m3");
  const auto has_given_all = [&] {
    return step("m3") > before && fleet.engine("m3").taken_up()->lacks_no_more;
  };
  for (int i = 0; i < 10'000 && !has_given_all(); ++i) fleet->run_for(0.001);
  ASSERT_TRUE(has_given_all());
  fleet->member("m3").hang(from_seconds(1000));
  const auto last = step("m1");
  for (int i = 0; i < 10'000 && step("m1") == last; ++i) fleet->run_for(0.001);
  fleet->run_for(18);
  for (const char* const machine : {"m1", "m2"}) EXPECT_FALSE(fleet->member(machine).done()) << machine;
  fleet->run_for(8);
  for (const char* const machine : {"m1", "m2"}) EXPECT_TRUE(fleet->member(machine).done()) << machine;
}

}  // namespace
}  // namespace gossamer::sparse_engine
