// SPDX-License-Identifier: Apache-2.0
#include "node/cluster_status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/check/check_config.h"
#include "engines/check/check_engine.h"
#include "engines/check/check_workload.h"
#include "simulation/fleet.h"

namespace gossamer::node {
namespace {

std::string first_line(const std::string& fields) {
  const auto text = status_text(R"({"run":"r","phase":"settled","epoch":3,"members":[])" + fields + "}");
  EXPECT_TRUE(text.ok());
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

// Claim: people see how far a run is, and how long yet. What is not known is left out.
TEST(ClusterStatus, SaysHowLongYet) {
  EXPECT_EQ(first_line(R"(,"step":120,"steps":400,"steps_per_second":2.0,"seconds_left":140.0)"),
            "run r  settled  epoch 3  step 120 of 400  2.0 steps/s  2 min 20 s left");
  EXPECT_EQ(first_line(R"(,"step":120,"steps":400,"steps_per_second":null,"seconds_left":null)"),
            "run r  settled  epoch 3  step 120 of 400");
  EXPECT_EQ(first_line(R"(,"step":120,"steps_per_second":2.0)"),
            "run r  settled  epoch 3  step 120  2.0 steps/s");
  EXPECT_FALSE(status_text("[]").ok());
}

constexpr check::CheckConfig kTwentySteps{.things = 8, .elements = 64, .steps = 20};

// A run of two members in virtual time, each of which holds something. It has done its steps.
class ClusterStatusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      fleet_.join({.make_engine = [](cluster::MemberProcess& process) {
        return std::make_unique<check::CheckEngine>(process, check::CheckEngine::Options{});
      }});
    }
    fleet_.run_for(20);
    ASSERT_EQ(fleet_.failure(), std::nullopt);
  }
  [[nodiscard]] nlohmann::json status(const StatusFacts& facts = {}) {
    return nlohmann::json::parse(status_json(*fleet_.leader(), facts, fleet_.timeline().now()));
  }
  // What a member says of its steps, from its next beat on.
  void tell(const std::string& machine, double loss, double bytes) {
    membership::StepFigures figures;
    figures.set_loss(loss);
    figures.set_step_bytes(bytes);
    figures.set_background_bytes(bytes / 100);
    fleet_.member(machine).member()->tell_steps(figures);
    fleet_.run_for(2);
  }

  check::CheckWorkload workload_{kTwentySteps};
  simulation::Fleet fleet_{
      simulation::Fleet::Options{.workload = workload_,
                                 .configuration = check::check_config_bytes(kTwentySteps),
                                 .tracks = workload_.tracks(),
                                 .first_members = 2,
                                 .seed = 1}};
};

// Claim: the loss of a run is the sum of its members' parts, and unknown while one that holds something has
// not told its own. Bytes are a member's mean.
TEST_F(ClusterStatusTest, AddsUpWhatMembersTell) {
  EXPECT_TRUE(status()["loss"].is_null());
  tell("m1", 0.25, 1000);
  EXPECT_TRUE(status()["loss"].is_null());
  EXPECT_TRUE(status()["bytes_sent_per_node_per_step"].is_null());
  tell("m2", 0.5, 3000);
  EXPECT_EQ(status()["loss"].get<double>(), 0.75);
  EXPECT_EQ(status()["bytes_sent_per_node_per_step"].get<double>(), 2000);
  EXPECT_EQ(status()["background_bytes_per_node_per_step"].get<double>(), 20);
}

// Claim: the time that is left is that of the steps that are left, at the speed of the last ones. A run that
// stands still has none.
TEST_F(ClusterStatusTest, SaysWhenItEnds) {
  const auto left = [this](std::optional<StepNumber> steps, std::optional<double> rate) {
    StatusFacts facts;
    facts.steps = steps;
    facts.steps_per_second = rate;
    const nlohmann::json said = status(facts);
    EXPECT_EQ(said["step"].get<std::uint64_t>(), 20U);
    return said["seconds_left"].is_null() ? -1 : said["seconds_left"].get<double>();
  };
  EXPECT_EQ(left(StepNumber(120), 4), 25);
  EXPECT_EQ(left(StepNumber(20), 4), 0);
  EXPECT_EQ(left(StepNumber(20), 0), 0);
  EXPECT_EQ(left(StepNumber(120), 0), -1);
  EXPECT_EQ(left(StepNumber(120), std::nullopt), -1);
  EXPECT_EQ(left(std::nullopt, 4), -1);
}

// Claim: metrics have a row for each phase that a coordinator can be in, in the order of its states.
TEST(ClusterStatus, NamesEveryPhase) {
  std::vector<std::string> names;
  for (int i = 0; *phase_name(static_cast<cluster::CoordinatorPhase>(i)) != '\0'; ++i)
    names.emplace_back(phase_name(static_cast<cluster::CoordinatorPhase>(i)));
  std::vector<std::string> told;
  for (const cluster::CoordinatorPhase phase : kPhases) told.emplace_back(phase_name(phase));
  EXPECT_EQ(told, names);
  EXPECT_GT(names.size(), 4U);
}

}  // namespace
}  // namespace gossamer::node
