// SPDX-License-Identifier: Apache-2.0
//
// Runs whose network is never in one memory.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "engines/sparse/model/model_tensors.h"
#include "engines/sparse/predict/predictor.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using testing::files_of;

// A run whose model is its network alone.
sparse_engine::TrainConfig network_run() {
  sparse_engine::TrainConfig config = testing::small_run();
  config.data.weighting = sparse_engine::Weighting::kNone;
  config.predict.instances = false;
  return config;
}

// Trains as this process would, and keeps the network to itself. What is asked of it comes row by row, with
// what it has measured.
class KeepingRunner final : public StepRunner {
 public:
  explicit KeepingRunner(const run::NodeHost& host) : host_(host) {}
  [[nodiscard]] std::uint64_t nodes() const override { return 3; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return 0;
  }
  void measure_by(const Measure& measure) override { measure_ = measure; }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths&,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks& hooks) override {
    auto outcome = sparse_engine::train(inputs, hooks);
    EXPECT_TRUE(outcome.ok());
    model_.network = *std::exchange(outcome->network, std::nullopt);
    model_.label_count = inputs.labels.count;
    model_.weighting = {.l2 = false};  // of Weighting::kNone
    if (!measures) return outcome;
    measured_ = measure_(
        [this](const sparse_engine::Model& shape) {
          EXPECT_EQ(shape.label_count, model_.label_count);
          auto predictor = sparse_engine::Predictor::create(
              model_, host_.kernels, host_.compute, {.fusion = {}, .parts = sparse_engine::kNetAlone});
          return *std::move(predictor);
        },
        [] { return false; });
    (*measured_)->seconds = 0.5;
    return outcome;
  }
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    taken = true;
    NetworkInParts parts{.tensors = {}, .holder = nullptr, .measured = measured_};
    for (tensors::TensorSource& one : sparse_engine::tensors_of(model_, {})) {
      if (one.name.starts_with("embedding") || one.name.starts_with("output")) parts.tensors.push_back(one);
    }
    return std::optional(std::move(parts));
  }
  void saved() override { is_saved = true; }
  [[nodiscard]] StepsCost cost() const override { return {}; }

  bool is_saved = false;
  bool measures = true;
  bool taken = false;  // take_parts() was called

 private:
  const run::NodeHost& host_;
  sparse_engine::Model model_;
  Measure measure_;
  std::optional<Result<Measured>> measured_;
};

// A network that stays in parts becomes, file by file, the model that one process writes. The figures are
// those of one process, whether others have measured them or this process has to. A process that is to stop,
// or cannot hold the network, says how to measure the model, and there is no summary.
TEST(TrainRun, TheNetworkMayStayInParts) {
  const sparse_engine::TrainConfig config = network_run();
  const auto run = [&](SimMachine& machine, StepRunner* runner, FunctionRef<bool()> stop) {
    EXPECT_TRUE(machine.disk.make_directories("/data").ok());
    write(machine.disk, "/data/train.txt", two_classes(40));
    write(machine.disk, "/data/test.txt", two_classes(10));
    return run_training(machine.host(), {.directory = "/run",
                                         .resume = run::Continue::kNo,
                                         .config = config,
                                         .settings = {},
                                         .stop_requested = stop,
                                         .runner = runner});
  };
  const auto goes_on = [] { return false; };
  SimMachine alone;
  const auto want = run(alone, nullptr, goes_on);
  ASSERT_TRUE(want.ok()) << want.error().message();
  enum class Case { kMeasured, kLeftToThisProcess, kStopped };
  for (const Case one : {Case::kMeasured, Case::kLeftToThisProcess, Case::kStopped}) {
    SimMachine machine;
    const run::NodeHost host = machine.host();
    KeepingRunner runner(host);
    runner.measures = one == Case::kMeasured;
    const auto stops = [&] { return one == Case::kStopped && runner.taken; };
    const auto got = run(machine, &runner, stops);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), files_of(alone.disk, "/run/model"));
    // What others delivered stays until the run is finished.
    const bool finished = one != Case::kStopped;
    EXPECT_EQ(runner.is_saved, finished);
    EXPECT_EQ(got->stopped, !finished);
    EXPECT_EQ(*machine.disk.exists("/run/summary.json"), finished);
    if (!finished) {
      EXPECT_TRUE(
          machine.said("stopped while measuring; the model is in /run; to measure it: gossamer eval "
                       "/run --data /data/test.txt"))
          << machine.console.text;
      continue;
    }
    const json summary = json::parse(got->summary);
    EXPECT_EQ(summary["metrics"], json::parse(want->summary)["metrics"]);
    EXPECT_EQ(summary["eval_seconds"] == 0.5, runner.measures);
  }
}

}  // namespace
}  // namespace gossamer::commands
