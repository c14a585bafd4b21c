// SPDX-License-Identifier: Apache-2.0
#include "commands/run/step_watch.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "run/console.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

class BarConsole final : public run::Console {
 public:
  void write(std::string_view more) override { text += more; }
  [[nodiscard]] bool terminal() const override { return true; }
  [[nodiscard]] int columns() const override { return 100; }
  std::string text;
};

class StepWatchTest : public ::testing::Test {
 protected:
  void tell(std::uint64_t first, std::uint64_t last, bool just_done = true) {
    for (std::uint64_t step = first; step <= last; ++step) {
      machine_.clock.advance(from_seconds(1));
      watch_.on_step({.steps_done = step,
                      .steps_total = total_,
                      .loss = static_cast<double>(step),
                      .just_done = just_done});
    }
  }
  [[nodiscard]] std::vector<nlohmann::json> lines() {
    std::vector<nlohmann::json> lines;
    std::istringstream text(*host::read_text(machine_.disk, "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::uint64_t total_ = 3000;  // three steps a line
  run::testing::SimMachine machine_;
  const run::NodeHost host_ = machine_.host();
  run::RunLog log_{machine_.disk, machine_.clock, {.metrics = "metrics.jsonl", .events = "events.jsonl"}};
  StepWatch watch_{host_, log_, 10};
};

// A line has the mean of its steps, and how fast they were.
TEST_F(StepWatchTest, ALineIsAMean) {
  tell(1, 6);
  const auto all = lines();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["step"], 3);
  EXPECT_EQ(all[0]["loss"], 2);
  EXPECT_EQ(all[1]["loss"], 5);
  EXPECT_EQ(all[1]["samples_per_second"], 10);
  EXPECT_EQ(watch_.steps_seen(), 6U);
}

// Steps that were left out come late. The lines from theirs on are written anew, without a speed, and those
// after them have one again.
TEST_F(StepWatchTest, StepsThatComeLate) {
  tell(1, 4);
  tell(9, 12);
  const StepNumber first = StepWatch::first_of_line(StepNumber(4), total_);
  EXPECT_EQ(first, StepNumber(3));
  tell(first.value + 1, 12, false);
  tell(13, 15);
  const auto all = lines();
  ASSERT_EQ(all.size(), 5U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["step"], 3 * (i + 1));
    EXPECT_EQ(all[i]["loss"], 3 * i + 2);
    EXPECT_EQ(all[i].contains("samples_per_second"), i == 0 || i == 4) << i;
  }
  EXPECT_EQ(watch_.steps_seen(), 15U);
  EXPECT_FALSE(watch_.error());
}

// Claim: the last step is on the bar, however soon it follows the step before.
TEST_F(StepWatchTest, ABarEndsAtTheLastStep) {
  BarConsole console;
  const run::NodeHost host{.disk = machine_.disk,
                           .clock = machine_.clock,
                           .compute = host_.compute,
                           .kernels = host_.kernels,
                           .console = console};
  StepWatch watch(host, log_, 10);
  for (std::uint64_t step = 1; step <= 40; ++step) {
    machine_.clock.advance(from_milliseconds(60));
    watch.on_step({.steps_done = step, .steps_total = 40, .loss = 2, .just_done = true});
  }
  watch.finish();
  EXPECT_NE(console.text.find("100 %  step 40/40"), std::string::npos) << console.text;
}

}  // namespace
}  // namespace gossamer::commands
