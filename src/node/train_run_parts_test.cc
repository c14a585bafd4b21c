// SPDX-License-Identifier: Apache-2.0
//
// Runs whose network is never in one memory.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engines/sparse/model_tensors.h"
#include "engines/sparse/predictor.h"
#include "learn/data/cached_dataset.h"
#include "node/queries.h"
#include "node/sim_machine.h"
#include "node/test_cache.h"
#include "node/train_run.h"

namespace gossamer::node {
namespace {

using nlohmann::json;
using testing::SimMachine;
using testing::two_classes;
using testing::write;

engine::TrainConfig tiny_config() {
  engine::TrainConfig config;
  config.data.train = "/data/train.txt";
  config.data.test = "/data/test.txt";
  config.data.weighting = engine::Weighting::kNone;
  config.model.hidden = 16;
  config.train.batch = 8;
  config.train.steps = 6;
  config.train.warmup_steps = 1;
  config.predict.instances = false;
  return config;
}

std::map<std::string, std::string> files_of(host::Disk& disk, const std::string& directory) {
  std::map<std::string, std::string> files;
  const auto names = disk.list(directory);
  EXPECT_TRUE(names.ok()) << names.error().message();
  if (!names.ok()) return files;
  for (const std::string& name : *names) files[name] = *host::read_text(disk, directory + "/" + name);
  return files;
}

// Trains as this process would, and keeps the network to itself: what is asked of it comes row by row, with
// what it has measured.
class KeepingRunner final : public StepRunner {
 public:
  explicit KeepingRunner(const NodeHost& host) : host_(host) {}
  [[nodiscard]] std::uint64_t nodes() const override { return 3; }
  [[nodiscard]] std::uint64_t memory_needed(const engine::TrainConfig&, const engine::Recipe&,
                                            const engine::DataShape&) const override {
    return 0;
  }
  [[nodiscard]] Result<engine::TrainOutcome> train(const RunPaths& paths, const engine::TrainInputs& inputs,
                                                   const engine::TrainHooks& hooks) override {
    auto outcome = engine::train(inputs, hooks);
    EXPECT_TRUE(outcome.ok());
    model_.network = *std::exchange(outcome->network, std::nullopt);
    model_.label_count = inputs.labels.count;
    model_.weighting = {.l2 = false};  // of Weighting::kNone
    measure(paths.cache() + "/" + kTestCache);
    return outcome;
  }
  [[nodiscard]] Result<std::optional<NetworkInParts>> take_parts() override {
    NetworkInParts parts{.tensors = {}, .holder = nullptr, .ranks = ranks_, .eval_seconds = 0};
    for (engine::TensorSource& one : engine::tensors_of(model_, {})) {
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
    auto predictor = engine::Predictor::create(model_, host_.kernels, host_.compute,
                                               {.fusion = {}, .parts = engine::kNetAlone});
    ranks_.emplace();
    engine::PredictionBlock out;
    QueryBlock query;
    for (std::uint64_t i = 0; i < (*records)->size(); ++i) {
      const data::Record record = (*records)->record(RecordIndex{i});
      query.clear();
      query.add(record.features, (*records)->features());
      EXPECT_TRUE((*predictor)->predict(query.rows(), engine::kEvaluationDepth, out).ok());
      for (const std::uint32_t label : record.labels) {
        const auto at = std::ranges::find(out.row(0), label, &engine::Scored::id);
        ranks_->push_back(at == out.row(0).end() ? 0
                                                 : static_cast<std::uint32_t>(at - out.row(0).begin()) + 1);
      }
    }
  }

  const NodeHost& host_;
  engine::Model model_;
  std::optional<std::vector<std::uint32_t>> ranks_;
};

// A network that stays in parts becomes the model that one process writes, file by file, and what others have
// measured the figures of one process. Where they have not, there is a model and no summary.
TEST(TrainRun, TheNetworkMayStayInParts) {
  const engine::TrainConfig config = tiny_config();
  const auto stop = [] { return false; };
  const auto run = [&](SimMachine& machine, StepRunner* runner) {
    EXPECT_TRUE(machine.disk.make_directories("/data").ok());
    write(machine.disk, "/data/train.txt", two_classes(40));
    write(machine.disk, "/data/test.txt", two_classes(10));
    return run_training(machine.host(), {.directory = "/run",
                                         .resume = Continue::kNo,
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
    const NodeHost host = machine.host();
    KeepingRunner runner(host);
    runner.measures = measures;
    const auto got = run(machine, &runner);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_TRUE(runner.is_saved);
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
}  // namespace gossamer::node
