// SPDX-License-Identifier: Apache-2.0
#include "engines/run/lockstep_engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "net/link/channels.h"
#include "simulation/fleet.h"

namespace gossamer::engine {
namespace {

constexpr std::uint64_t kThings = 6;

// What members of all machines do in a test.
struct Wanted {
  bool saves = true;
  Duration pause = from_milliseconds(50);
  std::optional<std::uint64_t> steps = {};
  std::function<bool()> lasts = [] { return true; };
  std::string liar = {};  // it wishes to halt with each step
};

// Takes steps, and notes what it was told to save.
class SavingEngine final : public LockstepEngine {
 public:
  SavingEngine(cluster::MemberProcess& process, Wanted wanted, bool lies)
      : LockstepEngine(process, net::kCheckChannel), wanted_(std::move(wanted)), lies_(lies) {}
  [[nodiscard]] std::vector<CounterSample> counters() const override { return {}; }
  [[nodiscard]] const std::vector<StepNumber>& saved() const { return saved_; }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] int finished() const { return finished_; }

 private:
  Result<Steps> prepare(const std::string&) override {
    return Steps{.all = wanted_.steps, .elements = 2, .pause = wanted_.pause, .saves = wanted_.saves};
  }
  [[nodiscard]] std::vector<std::uint64_t> things() const override { return {held_.begin(), held_.end()}; }
  Result<GoOn> take_on(const membership::Install& installed, StepNumber next) override {
    held_.clear();
    for (const membership::Holding& holding : installed.holdings()) {
      if (NodeId(holding.node()) == member().self().node) held_.insert(holding.thing());
    }
    return GoOn{.step = read_step(installed.decision()).value_or(next)};
  }
  void form(StepNumber, std::span<float> input, Instant) override {
    EXPECT_EQ(input.size(), 2U);
    input[1] = static_cast<float>(held_.size());
    // The number of wishes lies behind the engine's numbers.
    if (lies_) *std::next(&input.back()) = 1;
  }
  Result<std::optional<double>> apply(StepNumber, std::span<const float> sum) override {
    EXPECT_EQ(sum.size(), 2U);
    EXPECT_EQ(sum[1], static_cast<float>(kThings));
    return std::optional<double>();
  }
  void applied(const MemberStep&, Duration) override {}
  Result<void> finish() override {
    ++finished_;
    return {};
  }
  void save(StepNumber next) override { saved_.push_back(next); }
  [[nodiscard]] bool save_lasts() const override { return wanted_.lasts(); }

  const Wanted wanted_;
  const bool lies_;
  std::set<std::uint64_t> held_;
  std::vector<StepNumber> saved_;
  int finished_ = 0;
};

class LockstepEngineTest : public ::testing::Test {
 protected:
  // Members whose links have 10 ms of delay.
  void begin(std::size_t members, const Wanted& wanted, std::uint64_t seed = 1) {
    workload_.emplace(LockstepWorkload::Options{.things = kThings, .thing_bytes = 8});
    fleet_.emplace(simulation::Fleet::Options{
        .workload = *workload_, .tracks = workload_->tracks(), .first_members = members, .seed = seed});
    for (std::size_t i = 1; i <= members; ++i) {
      const bool lies = wanted.liar == "m" + std::to_string(i);
      fleet_->join({.make_engine = [wanted, lies](cluster::MemberProcess& process) {
        return std::make_unique<SavingEngine>(process, wanted, lies);
      }});
    }
    fleet_->run_for(5);
    ASSERT_EQ(fleet_->failure(), std::nullopt);
  }
  [[nodiscard]] const SavingEngine& engine(const std::string& machine) {
    return static_cast<const SavingEngine&>(fleet_->member(machine).engine());
  }
  [[nodiscard]] bool all_done() {
    for (const auto& [machine, member] : fleet_->members()) {
      if (!member->done()) return false;
    }
    return true;
  }

  std::optional<LockstepWorkload> workload_;
  std::optional<simulation::Fleet> fleet_;
};

// Claim: members name the one whose engine hangs, for as long as it does. While steps go on, what they wait
// for changes all the time.
TEST_F(LockstepEngineTest, NamesWhoIsAwaited) {
  begin(4, {});
  std::set<std::uint64_t> exchanges;
  for (int i = 0; i < 100; ++i) {
    fleet_->run_for(0.01);
    if (const auto awaited = engine("m1").awaits()) exchanges.insert(awaited->exchange);
  }
  EXPECT_GT(exchanges.size(), 5U);
  fleet_->member("m3").hang(from_seconds(30));
  for (int i = 0; i < 10; ++i) {
    fleet_->run_for(2);
    for (const char* const machine : {"m1", "m2", "m4"}) {
      const auto awaited = engine(machine).awaits();
      ASSERT_TRUE(awaited) << machine;
      EXPECT_EQ(awaited->nodes, std::set{fleet_->member("m3").member()->self().node}) << machine;
      EXPECT_EQ(awaited->exchange, engine(machine).step()->value);
    }
  }
}

// Claim: members of a run that is stopped at any moment save before the same step, once, and leave. A member
// that holds nothing saves nothing.
TEST_F(LockstepEngineTest, StoppedMembersSaveTheSameStep) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    begin(1 + seed % 8, {.pause = from_milliseconds(seed % 3 == 0 ? 0 : 50)}, seed);
    fleet_->run_for(0.01 * static_cast<double>(seed));
    // Some hear of it when the others have taken more steps.
    if (seed % 2 == 0) fleet_->internet().set_path("c1", "m1", {.delay = from_seconds(0.3)});
    fleet_->stop("somebody said so");
    fleet_->run_for(2);
    EXPECT_TRUE(all_done()) << "seed " << seed;
    EXPECT_EQ(fleet_->failure(), std::nullopt);
    std::set<StepNumber> saved;
    for (const auto& [machine, member] : fleet_->members()) {
      const auto& own = engine(machine).saved();
      EXPECT_EQ(own.size(), engine(machine).held() > 0 ? 1U : 0U) << machine << ", seed " << seed;
      saved.insert(own.begin(), own.end());
    }
    EXPECT_EQ(saved.size(), 1U) << "seed " << seed;
    EXPECT_GT(saved.begin()->value, 10U);
  }
}

// Claim: a run that is told to end at any moment of a change of its view saves the same step at all members,
// too.
TEST_F(LockstepEngineTest, StoppedWhileTheViewChanges) {
  for (std::uint64_t after = 0; after < 40; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 3 ms");
    begin(3, {.pause = from_milliseconds(2)}, after);
    fleet_->internet().set_path("c1", "m1", {.delay = from_milliseconds(25)});
    const Epoch before = fleet_->durable().begun();
    fleet_->member(after % 2 == 0 ? "m2" : "m3").drain("it was told to");
    while (fleet_->durable().begun() == before) fleet_->run_for(0.001);
    fleet_->run_for(0.003 * static_cast<double>(after));
    fleet_->stop("enough");
    fleet_->run_for(15);
    EXPECT_TRUE(all_done()) << fleet_->log();
    EXPECT_EQ(fleet_->failure(), std::nullopt);
    std::set<StepNumber> saved;
    std::size_t held = 0;
    for (const auto& [machine, member] : fleet_->members()) {
      saved.insert(engine(machine).saved().begin(), engine(machine).saved().end());
      held += engine(machine).saved().empty() ? 0 : engine(machine).held();
    }
    EXPECT_EQ(saved.size(), 1U);
    EXPECT_EQ(held, kThings);
  }
}

// Claim: members that are all told to leave, at once or one after the other, lose no step. Those that are the
// last save before the same step, which no member has gone beyond, all that there is between them.
TEST_F(LockstepEngineTest, TheLastToLeaveSaveTheSameStep) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, Purpose::kTest);
    const std::size_t members = 1 + seed % 5;
    // One that is alone waits for nobody, and needs a pause.
    begin(members, {.pause = from_milliseconds(seed % 3 == 0 ? 2 : 50)}, seed);
    StepNumber most;
    const auto run_for = [&](double seconds) {
      for (double past = 0; past < seconds; past += 0.002) {
        fleet_->run_for(0.002);
        for (const auto& [machine, member] : fleet_->members())
          most = std::max(most, engine(machine).step().value_or(StepNumber()));
      }
    };
    if (seed % 4 == 0) fleet_->internet().set_path("c1", "m1", {.delay = from_seconds(0.3)});
    const double within = seed % 2 == 0 ? 0.03 : 1.0;
    for (std::size_t i = 1; i <= members; ++i) {
      fleet_->member("m" + std::to_string(i)).drain("it was told to");
      run_for(within * static_cast<double>(rng.uniform()));
    }
    run_for(3);
    ASSERT_TRUE(all_done()) << fleet_->log();
    EXPECT_EQ(fleet_->failure(), std::nullopt);
    std::size_t held = 0;
    for (const auto& [machine, member] : fleet_->members()) {
      const auto& saved = engine(machine).saved();
      if (saved.empty()) continue;
      EXPECT_EQ(saved, std::vector{most}) << machine;
      held += engine(machine).held();
    }
    EXPECT_EQ(held, kThings);
  }
}

// Claim: while nobody leads, members that are told to go, at once or one after the other, save before the
// same step, which no member has gone beyond. Those that are not told yet save with them, and stay.
TEST_F(LockstepEngineTest, WithoutACoordinatorTheySaveTheSameStep) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::size_t members = 2 + seed % 4;
    begin(members, {}, seed);
    fleet_->kill_coordinator_for("c1", from_seconds(3600));
    fleet_->run_for(0.01 * static_cast<double>(seed));
    for (std::size_t i = 1; i <= members; ++i) {
      fleet_->member("m" + std::to_string(i)).save_and_leave("it was told to");
      if (seed % 2 == 0) fleet_->run_for(20);
      if (seed % 2 == 0 && i < members) {
        EXPECT_TRUE(fleet_->member("m" + std::to_string(i)).done());
        EXPECT_FALSE(fleet_->member("m" + std::to_string(i + 1)).done());
      }
    }
    fleet_->run_for(20);
    EXPECT_TRUE(all_done());
    std::set<StepNumber> saved;
    std::size_t held = 0;
    for (const auto& [machine, member] : fleet_->members()) {
      const auto& own = engine(machine).saved();
      EXPECT_EQ(own.size(), engine(machine).held() > 0 ? 1U : 0U) << machine;
      saved.insert(own.begin(), own.end());
      held += engine(machine).held();
    }
    EXPECT_EQ(saved.size(), 1U);
    EXPECT_EQ(held, kThings);
  }
}

// Claim: while nobody leads, a member that is told to go waits for nobody who stays.
TEST_F(LockstepEngineTest, OneGoesWhileTheOthersStay) {
  begin(3, {});
  fleet_->kill_coordinator_for("c1", from_seconds(3600));
  fleet_->run_for(11);
  for (const char* const machine : {"m1", "m2", "m3"}) {
    fleet_->member(machine).save_and_leave("it was told to");
    fleet_->run_for(1);
    EXPECT_TRUE(fleet_->member(machine).done()) << machine;
    EXPECT_EQ(engine(machine).saved(), engine("m1").saved());
    EXPECT_EQ(engine(machine).saved().size(), 1U);
  }
}

// Claim: members whose coordinator dies while the view changes come to rest a step apart. If all are told to
// leave then, they save before the same step.
TEST_F(LockstepEngineTest, AllLeaveInAChangeThatNobodyEnds) {
  std::uint64_t apart = 0;
  for (std::uint64_t after = 0; after < 60; ++after) {
    SCOPED_TRACE(::testing::Message() << after << " x 2 ms");
    begin(3, {.pause = from_milliseconds(2)}, after);
    fleet_->internet().set_path("m1", "m2", {.delay = from_milliseconds(30)});
    fleet_->run_for(0.2);
    const Epoch before = fleet_->durable().begun();
    fleet_->member("m2").drain("it was told to");
    while (fleet_->durable().begun() == before) fleet_->run_for(0.001);
    fleet_->run_for(0.002 * static_cast<double>(after));
    fleet_->kill_coordinator_for("c1", from_seconds(3600));
    fleet_->run_for(11);
    std::set<StepNumber> steps;
    for (const auto& [machine, member] : fleet_->members()) {
      if (const auto step = engine(machine).step()) steps.insert(*step);
    }
    apart += steps.size() > 1 ? 1 : 0;
    for (const auto& [machine, member] : fleet_->members()) member->save_and_leave("it was told to");
    fleet_->run_for(40);
    EXPECT_TRUE(all_done());
    EXPECT_EQ(fleet_->failure(), std::nullopt);
    std::set<StepNumber> saved;
    std::size_t held = 0;
    for (const auto& [machine, member] : fleet_->members()) {
      const auto& own = engine(machine).saved();
      saved.insert(own.begin(), own.end());
      held += own.empty() ? 0 : engine(machine).held();
    }
    EXPECT_EQ(saved.size(), 1U);
    EXPECT_GE(*saved.begin(), *steps.rbegin());
    EXPECT_EQ(held, kThings);
  }
  EXPECT_GE(apart, 4U) << "else the test shows little";
}

// Claim: a member that has halted with one that left goes on, once somebody leads.
TEST_F(LockstepEngineTest, WhoHaltsWithAnotherGoesOn) {
  begin(3, {});
  fleet_->kill_coordinator_for("c1", from_seconds(60));
  fleet_->run_for(1);
  fleet_->member("m1").save_and_leave("it was told to");
  fleet_->run_for(20);
  EXPECT_TRUE(fleet_->member("m1").done());
  const auto halted = engine("m2").step();
  EXPECT_EQ(engine("m2").saved(), std::vector{halted.value()});
  fleet_->run_for(10);
  EXPECT_EQ(engine("m2").step(), halted);
  fleet_->run_for(60);
  EXPECT_EQ(fleet_->failure(), std::nullopt);
  for (const char* const machine : {"m2", "m3"}) {
    EXPECT_FALSE(fleet_->member(machine).done());
    EXPECT_GT(engine(machine).step(), halted);
    EXPECT_EQ(engine(machine).saved().size(), 1U);
  }
}

// Claim: a member that wishes to halt with every step, and does not, costs the others one save. They take
// their steps, and save the same one when the run ends.
TEST_F(LockstepEngineTest, ALiarCostsOneSave) {
  begin(3, {.liar = "m3"});
  const StepNumber then = engine("m1").step().value();
  fleet_->run_for(10);
  EXPECT_GT(engine("m1").step().value().value, then.value + 20);
  for (const char* const machine : {"m1", "m2"}) EXPECT_EQ(engine(machine).saved().size(), 1U) << machine;
  fleet_->stop("somebody said so");
  fleet_->run_for(60);
  EXPECT_TRUE(all_done());
  ASSERT_EQ(engine("m1").saved().size(), 2U);
  EXPECT_EQ(engine("m1").saved().back(), engine("m2").saved().back());
}

// Claim: an engine that saves nothing leaves at once.
TEST_F(LockstepEngineTest, LeavesAtOnceWithNothingToSave) {
  begin(3, {.saves = false, .pause = from_seconds(60)});
  fleet_->stop("somebody said so");
  fleet_->run_for(1);
  EXPECT_TRUE(all_done());
  EXPECT_TRUE(engine("m1").saved().empty());
}

// Claim: no member leaves before its save lasts. They leave soon after.
TEST_F(LockstepEngineTest, StaysUntilItsSaveLasts) {
  bool lasts = false;
  begin(3, {.lasts = [&lasts] { return lasts; }});
  fleet_->stop("somebody said so");
  fleet_->run_for(30);
  for (const auto& [machine, member] : fleet_->members()) EXPECT_FALSE(member->done()) << machine;
  lasts = true;
  fleet_->run_for(1);
  EXPECT_TRUE(all_done());
  for (const char* const machine : {"m1", "m2", "m3"}) EXPECT_EQ(engine(machine).saved().size(), 1U);
}

// Claim: a run ends though a member is lost while it halts: killed, silent, or before it has heard of the
// stop. The others take over what it held, save the same step, once more if they had saved before, and leave.
TEST_F(LockstepEngineTest, LostMemberDoesNotStopTheEnd) {
  std::set<std::size_t> saves;
  for (const double after : {-0.3, -0.05, 0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 2.0}) {
    for (const bool silent : {false, true}) {
      bool lasts = false;
      begin(4, {.lasts = [&lasts] { return lasts; }}, 7);
      const auto lose = [&] { silent ? fleet_->pause_for("m2", from_seconds(1000)) : fleet_->kill("m2"); };
      if (after < 0) lose();
      fleet_->run_for(after < 0 ? -after : 0);
      fleet_->stop("somebody said so");
      fleet_->run_for(after < 0 ? 0 : after);
      if (after >= 0) lose();
      fleet_->run_for(5);
      lasts = true;
      fleet_->run_for(60);
      std::size_t held = 0;
      for (const char* const machine : {"m1", "m3", "m4"}) {
        EXPECT_TRUE(fleet_->member(machine).done())
            << machine << " after " << after << (silent ? " silent" : "");
        const auto& saved = engine(machine).saved();
        ASSERT_TRUE(saved.size() == 1 || saved.size() == 2) << machine << " after " << after;
        saves.insert(saved.size());
        EXPECT_EQ(saved.back(), engine("m1").saved().back()) << machine << " after " << after;
        held += engine(machine).held();
      }
      EXPECT_EQ(held, kThings);
    }
  }
  EXPECT_EQ(saves.size(), 2U) << "some are lost before the others save, and some afterwards";
}

// Claim: a member that has halted waits for the others for 10 s and two steps. Where steps are long, others
// may need so long for the same one.
TEST_F(LockstepEngineTest, WaitsForOthersAsLongAsStepsTake) {
  begin(3, {});
  for (const char* const other : {"m1", "m2"}) {
    fleet_->internet().set_path("m3", other, {.delay = from_seconds(1)});
    fleet_->internet().set_path(other, "m3", {.delay = from_seconds(1)});
  }
  fleet_->run_for(10);
  fleet_->stop("somebody said so");
  const auto before = engine("m1").step();
  for (int i = 0; i < 10'000 && engine("m1").step() == before; ++i) fleet_->run_for(0.001);
  fleet_->run_for(0.2);  // the step with the wish is under way
  fleet_->member("m3").hang(from_seconds(1000));
  for (int i = 0; i < 10'000 && engine("m1").saved().empty(); ++i) fleet_->run_for(0.001);
  ASSERT_FALSE(engine("m1").saved().empty());
  fleet_->run_for(11.5);
  for (const char* const machine : {"m1", "m2"}) EXPECT_FALSE(fleet_->member(machine).done()) << machine;
  fleet_->run_for(1);
  for (const char* const machine : {"m1", "m2"}) EXPECT_TRUE(fleet_->member(machine).done()) << machine;
}

// Claim: while a run ends, a member dies, and then the coordinator before the next view is there. The others
// wait for that view for a minute, and then leave with what they have saved.
TEST_F(LockstepEngineTest, NobodyEndsTheLastChange) {
  bool lasts = false;
  begin(3, {.lasts = [&lasts] { return lasts; }});
  fleet_->stop("somebody said so");
  fleet_->run_for(1);
  const Epoch before = fleet_->durable().begun();
  fleet_->kill("m3");
  const auto rests = [this, before](const std::string& machine) {
    return fleet_->member(machine).member()->view().epoch() > before;
  };
  for (int i = 0; i < 60'000 && !(rests("m1") && rests("m2")); ++i) fleet_->run_for(0.001);
  ASSERT_TRUE(rests("m1") && rests("m2")) << fleet_->log();
  fleet_->kill_coordinator_for("c1", from_seconds(36'000));
  lasts = true;
  fleet_->run_for(50);
  for (const char* const machine : {"m1", "m2"}) EXPECT_FALSE(fleet_->member(machine).done()) << machine;
  fleet_->run_for(50);
  EXPECT_TRUE(all_done());
  EXPECT_EQ(engine("m1").saved().size(), 1U);
  EXPECT_EQ(engine("m1").saved(), engine("m2").saved());
}

// Claim: after the last step members are quiet. Stopped then, they save nothing more, and leave once what
// they have finished lasts.
TEST_F(LockstepEngineTest, FinishedMembersSaveNothing) {
  bool lasts = false;
  begin(3, {.pause = {}, .steps = 20, .lasts = [&lasts] { return lasts; }});
  fleet_->run_for(5);
  fleet_->stop("the network is trained");
  fleet_->run_for(5);
  EXPECT_FALSE(all_done());
  lasts = true;
  fleet_->run_for(1);
  EXPECT_TRUE(all_done());
  for (const char* const machine : {"m1", "m2", "m3"}) {
    EXPECT_TRUE(engine(machine).saved().empty());
    EXPECT_EQ(engine(machine).finished(), 1);
  }
}

// Claim: a run whose steps are counted may have none; without a count it has no end.
TEST_F(LockstepEngineTest, NoStepsAreAnEndToo) {
  begin(2, {.steps = 0});
  EXPECT_EQ(engine("m1").step(), StepNumber(0));
  EXPECT_EQ(engine("m1").finished(), 1);
  begin(2, {});
  EXPECT_GT(engine("m1").step()->value, 20U);
  EXPECT_EQ(engine("m1").finished(), 0);
}

}  // namespace
}  // namespace gossamer::engine
