// SPDX-License-Identifier: Apache-2.0
//
// Runs whose network is never in one memory.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands/records/queries.h"
#include "commands/train/evaluation_records.h"
#include "commands/train/test_small_run.h"
#include "commands/train/train_run.h"
#include "engines/sparse/model/model_tensors.h"
#include "engines/sparse/predict/predictor.h"
#include "learn/data/cached_dataset.h"
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

// Trains as this process would, and keeps the network to itself: what is asked of it comes row by row, with
// what it has measured.
class KeepingRunner final : public StepRunner {
 public:
  explicit KeepingRunner(const run::NodeHost& host) : host_(host) {}
  [[nodiscard]] std::uint64_t nodes() const override { return 3; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const sparse_engine::TrainHooks& hooks) override {
    auto outcome = sparse_engine::train(inputs, hooks);
    EXPECT_TRUE(outcome.ok());
    model_.network = *std::exchange(outcome->network, std::nullopt);
    model_.label_count = inputs.labels.count;
    model_.weighting = {.l2 = false};  // of Weighting::kNone
    measure(paths.cache() + "/" + kTestCache);
    return outcome;
  }
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    NetworkInParts parts{.tensors = {}, .holder = nullptr, .ranks = ranks_, .eval_seconds = 0};
    for (tensors::TensorSource& one : sparse_engine::tensors_of(model_, {})) {
      if (one.name.starts_with("embedding") || one.name.starts_with("output")) parts.tensors.push_back(one);
    }
    return std::optional(std::move(parts));
  }
  void saved() override { is_saved = true; }
  [[nodiscard]] Cost cost() const override { return {}; }

  bool is_saved = false;
  bool measures = true;

 private:
  void measure(const std::string& path) {
    if (!measures) return;
    const auto records = data::CachedDataset::open(host_.disk, path, host_.compute);
    ASSERT_TRUE(records.ok()) << records.error().message();
    auto predictor = sparse_engine::Predictor::create(model_, host_.kernels, host_.compute,
                                                      {.fusion = {}, .parts = sparse_engine::kNetAlone});
    ranks_.emplace();
    sparse_engine::PredictionBlock out;
    QueryBlock query;
    for (std::uint64_t i = 0; i < (*records)->size(); ++i) {
      const data::Record record = (*records)->record(RecordIndex{i});
      query.clear();
      query.add(record.features, (*records)->features());
      EXPECT_TRUE((*predictor)->predict(query.rows(), sparse_engine::kEvaluationDepth, out).ok());
      for (const std::uint32_t label : record.labels) {
        const auto at = std::ranges::find(out.row(0), label, &sparse_engine::Scored::id);
        ranks_->push_back(at == out.row(0).end() ? 0
                                                 : static_cast<std::uint32_t>(at - out.row(0).begin()) + 1);
      }
    }
  }

  const run::NodeHost& host_;
  sparse_engine::Model model_;
  std::optional<std::vector<std::uint32_t>> ranks_;
};

// A network that stays in parts becomes, file by file, the model that one process writes.
// Figures that others have measured become those of one process. Where they have measured
// nothing, there is a model and no summary.
TEST(TrainRun, TheNetworkMayStayInParts) {
  const sparse_engine::TrainConfig config = network_run();
  const auto stop = [] { return false; };
  const auto run = [&](SimMachine& machine, StepRunner* runner) {
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
  SimMachine alone;
  const auto want = run(alone, nullptr);
  ASSERT_TRUE(want.ok()) << want.error().message();
  for (const bool measures : {true, false}) {
    SimMachine machine;
    const run::NodeHost host = machine.host();
    KeepingRunner runner(host);
    runner.measures = measures;
    const auto got = run(machine, &runner);
    ASSERT_TRUE(got.ok()) << got.error().message();
    // What others delivered stays until the run is finished.
    EXPECT_EQ(runner.is_saved, measures);
    EXPECT_EQ(files_of(machine.disk, "/run/model"), files_of(alone.disk, "/run/model"));
    EXPECT_EQ(got->stopped, !measures);
    EXPECT_EQ(*machine.disk.exists("/run/summary.json"), measures);
    if (!measures) {
      EXPECT_TRUE(machine.said("gossamer eval /run --data /data/test.txt")) << machine.console.text;
      continue;
    }
    EXPECT_EQ(json::parse(got->summary)["metrics"], json::parse(want->summary)["metrics"]);
  }
}

}  // namespace
}  // namespace gossamer::commands
