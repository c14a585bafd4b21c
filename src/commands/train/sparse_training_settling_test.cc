// SPDX-License-Identifier: Apache-2.0
//
// What a run settles once, before its first step, for all processes that it will ever have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using ::testing::HasSubstr;

sparse_engine::TrainConfig open_run() {
  sparse_engine::TrainConfig config = testing::small_run();
  config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 2};
  return config;
}

void put_records(host::Disk& disk) {
  ASSERT_TRUE(disk.make_directories("/data").ok());
  run::testing::write(disk, "/data/train.txt", run::testing::two_classes(40));
  run::testing::write(disk, "/data/test.txt", run::testing::two_classes(10));
  ASSERT_TRUE(disk.sync_directory("/data").ok());
  ASSERT_TRUE(disk.sync_directory("/").ok());
}

// Does the steps as this process would, in the name of a fleet.
class FleetInName final : public StepRunner {
 public:
  [[nodiscard]] std::uint64_t nodes() const override { return 3; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths&,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks& hooks) override {
    return sparse_engine::train(inputs, hooks);
  }
  [[nodiscard]] StepsCost cost() const override { return {}; }
};

// What the products of a fleet are computed with is settled once, and run.toml says so: CPUs of two kinds
// would choose differently. One process leaves it open, and so does a run that had left it open before.
TEST(TrainRun, PrecisionIsSettledOnceForAFleet) {
  for (const bool fleet : {true, false}) {
    for (const bool set : {true, false}) {
      SimMachine machine;
      put_records(machine.disk);
      FleetInName runner;
      sparse_engine::TrainConfig config = open_run();
      if (set) config.train.precision = kernels::Element::kBf16;
      const auto stop = [] { return false; };
      ASSERT_TRUE(run_training(machine.host(), {.directory = "/run",
                                                .resume = run::Continue::kNo,
                                                .config = config,
                                                .settings = {},
                                                .stop_requested = stop,
                                                .runner = fleet ? &runner : nullptr})
                      .ok());
      const std::string chosen(kernels::name(kernels::preferred_element(machine.host().kernels.isa)));
      const std::string expected = set ? "bf16" : fleet ? chosen : "auto";
      EXPECT_THAT(*host::read_text(machine.disk, "/run/run.toml"),
                  HasSubstr("precision = \"" + expected + "\""));
    }
  }
}

// A run of an earlier version has left it open. Its checkpoints are of that configuration, so it goes on as
// it began.
TEST(TrainRun, PrecisionThatWasOpenStaysOpen) {
  for (const bool begins : {true, false}) {
    SimMachine machine;
    put_records(machine.disk);
    const run::NodeHost host = machine.host();
    const auto stop = [] { return false; };
    const auto training = sparse_training({.host = host,
                                           .paths = run::RunPaths("/run"),
                                           .run_id = "a",
                                           .config = sparse_engine::train_keys().values(open_run()),
                                           .stop_requested = stop,
                                           .begins = begins},
                                          std::make_shared<FleetInName>());
    ASSERT_TRUE(machine.disk.make_directories("/run").ok());
    const auto prepared = training->prepare();
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    EXPECT_EQ(sparse_engine::train_keys().config(training->config()).train.precision.has_value(), begins);
  }
}

// A run that died while it read its data is no run of an earlier version. What was left open is settled as if
// nothing had happened, whenever it died.
TEST(TrainRun, SettlesTheSameAfterADeath) {
  const auto run = [](const run::NodeHost& host, run::Continue resume) {
    FleetInName runner;
    sparse_engine::TrainConfig config = open_run();
    config.predict.instances = false;
    const auto goes_on = [] { return false; };
    return run_training(host, {.directory = "/run",
                               .resume = resume,
                               .config = config,
                               .settings = {},
                               .stop_requested = goes_on,
                               .runner = &runner});
  };
  // All but the line that names the run.
  const auto settled = [](host::Disk& disk) {
    const std::string text = *host::read_text(disk, "/run/run.toml");
    return text.substr(text.find('\n'));
  };
  SimMachine rehearsal;
  put_records(rehearsal.disk);
  rehearsal.disk.restart_count({});
  ASSERT_TRUE(run(rehearsal.host(), run::Continue::kNo).ok());
  const std::uint64_t operations = rehearsal.disk.operations();
  EXPECT_THAT(settled(rehearsal.disk), ::testing::Not(HasSubstr("held_out = 0\n")));
  for (std::uint64_t k = 0; k < operations; ++k) {
    SCOPED_TRACE(k);
    SimMachine machine;
    put_records(machine.disk);
    machine.disk.restart_count({.seed = k + 1, .crash_at_operation = k});
    static_cast<void>(run(machine.host(), run::Continue::kNo).ok());
    const auto left = machine.disk.after_crash();
    const auto done = run(machine.host_with(*left), run::Continue::kResume);
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_EQ(settled(*left), settled(rehearsal.disk));
  }
}

}  // namespace
}  // namespace gossamer::commands
