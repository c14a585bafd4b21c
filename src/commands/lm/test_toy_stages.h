// SPDX-License-Identifier: Apache-2.0
//
// Toys in place of libtorch, and a small run of one. For the tests of this folder. Thread rule: one thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands/lm/lm_modules.h"
#include "commands/lm/lm_training.h"
#include "commands/run/train_run.h"
#include "engines/pipeline/config/lm_config.h"
#include "engines/pipeline/stage/toy_stage.h"
#include "host/api/files.h"
#include "learn/tokens/test_pieces_module.h"
#include "run/test_machine.h"

namespace gossamer::commands::testing {

// A toy of the shape. What a toy does not have (heads, norms) is not looked at.
inline Result<std::unique_ptr<pipeline::StageBackend>> make_toy(const pipeline::TorchStageOptions& options) {
  const pipeline::LmShape& shape = options.shape;
  return pipeline::make_toy_stage({.vocabulary = shape.vocabulary,
                                   .context = shape.context,
                                   .width = shape.width,
                                   .hidden = shape.hidden,
                                   .layers = shape.layers},
                                  options.cut, options.seed);
}
inline Result<MakeStage> open_toys(const run::NodeHost&) { return MakeStage(make_toy); }
// A machine without libtorch.
inline Result<MakeStage> open_nothing(const run::NodeHost&) {
  return Error{.kind = ErrorKind::kRefused, .what = "there is no module", .fix = "make torch"};
}
inline Result<const tokens::SentencePieceModule*> open_toy_pieces(const run::NodeHost&) {
  return &tokens::test_pieces::kModule;
}
inline LmModules toys() { return {.stages = open_toys, .pieces = open_toy_pieces}; }

// What was asked of toys.
struct ToysAsked {
  std::vector<pipeline::Precision> precisions;  // of stages
  std::vector<pipeline::Keep> kept;             // of tasks
  int writes = 0;                               // of weights
};

// A toy that tells what it is asked, and whose loss is larger in bf16.
class TellingToy final : public pipeline::StageBackend {
 public:
  TellingToy(std::unique_ptr<pipeline::StageBackend> toy, bool bf16, ToysAsked& asked)
      : toy_(std::move(toy)), bf16_(bf16), asked_(asked) {}

  [[nodiscard]] const pipeline::StageCut& cut() const override { return toy_->cut(); }
  [[nodiscard]] std::uint32_t width() const override { return toy_->width(); }
  [[nodiscard]] std::uint32_t vocabulary() const override { return toy_->vocabulary(); }
  [[nodiscard]] std::uint32_t context() const override { return toy_->context(); }
  [[nodiscard]] std::span<const pipeline::StageTensor> tensors() override { return toy_->tensors(); }
  [[nodiscard]] Result<std::unique_ptr<pipeline::StageTask>> begin(const pipeline::Microbatch& microbatch,
                                                                   pipeline::Keep keep) override {
    asked_.kept.push_back(keep);
    auto task = toy_->begin(microbatch, keep);
    if (!task.ok()) return task.error();
    return std::unique_ptr<pipeline::StageTask>(std::make_unique<Task>(*std::move(task), bf16_));
  }
  [[nodiscard]] Result<std::vector<double>> next_scores(
      std::span<const pipeline::TokenNumber> window) override {
    return toy_->next_scores(window);
  }
  [[nodiscard]] Result<void> weights_changed() override {
    ++asked_.writes;
    return toy_->weights_changed();
  }

 private:
  struct Task final : pipeline::StageTask {
    Task(std::unique_ptr<pipeline::StageTask> real_task, bool in_bf16)
        : task(std::move(real_task)), bf16(in_bf16) {}
    [[nodiscard]] Result<bool> forward_next() override { return task->forward_next(); }
    [[nodiscard]] pipeline::ConstNumbers output() const override { return task->output(); }
    [[nodiscard]] pipeline::LossSum loss() const override {
      pipeline::LossSum sum = task->loss();
      if (bf16) sum.loss += static_cast<double>(sum.tokens);
      return sum;
    }
    [[nodiscard]] Result<void> begin_backward(std::optional<pipeline::ConstNumbers> gradient) override {
      return task->begin_backward(gradient);
    }
    [[nodiscard]] Result<bool> backward_next() override { return task->backward_next(); }
    [[nodiscard]] pipeline::ConstNumbers input_gradient() const override { return task->input_gradient(); }
    [[nodiscard]] bool can_add() const override { return task->can_add(); }
    [[nodiscard]] Result<bool> add_next() override { return task->add_next(); }
    void keep_less(pipeline::Keep keep) override { task->keep_less(keep); }
    [[nodiscard]] std::uint64_t bytes() const override { return task->bytes(); }

    std::unique_ptr<pipeline::StageTask> task;
    bool bf16;
  };

  std::unique_ptr<pipeline::StageBackend> toy_;
  bool bf16_;
  ToysAsked& asked_;
};

// `asked` outlives what is made.
inline LmModules toys_that_tell(ToysAsked& asked) {
  const MakeStage make =
      [&asked](
          const pipeline::TorchStageOptions& options) -> Result<std::unique_ptr<pipeline::StageBackend>> {
    asked.precisions.push_back(options.precision);
    auto toy = make_toy(options);
    if (!toy.ok()) return toy.error();
    return std::unique_ptr<pipeline::StageBackend>(std::make_unique<TellingToy>(
        *std::move(toy), options.precision == pipeline::Precision::kBf16, asked));
  };
  return {.stages = [make](const run::NodeHost&) { return Result<MakeStage>(make); },
          .pieces = open_toy_pieces};
}

// A text that repeats, so that a small model can learn it.
inline std::string repeating_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += i % 3 == 0 ? "abcabcabc\n" : "abcabc\n";
  return text;
}

struct LmRunOptions {
  std::vector<std::string> words = {};  // key=value, over those of a small run
  run::Continue resume = run::Continue::kNo;
  std::vector<settings::KeySetting> settings = {};
  std::uint64_t stop_after = UINT64_MAX;  // it is asked to stop when it has asked so often
  LmModules modules = toys();
};

inline settings::Values small_lm(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"data.train=/data/train.txt",
                                  "model.context=8",
                                  "model.width=4",
                                  "model.heads=2",
                                  "model.hidden=6",
                                  "model.layers=2",
                                  "train.batch=4",
                                  "train.steps=6",
                                  "train.microbatch=2",
                                  "checkpoint.every_steps=2",
                                  "checkpoint.every_minutes=0"};
  all.insert(all.end(), words.begin(), words.end());
  settings::Values values = pipeline::lm_keys().defaults();
  const auto applied = values.apply_words(all);
  EXPECT_TRUE(applied.ok()) << applied.error().message();
  return values;
}

// A run in /run.
inline Result<TrainResult> train_lm_run(const run::NodeHost& host, const LmRunOptions& options = {}) {
  std::uint64_t asked = 0;
  const auto stop = [&] { return ++asked > options.stop_after; };
  const settings::Values config = small_lm(options.words);
  const RunRequest request{.directory = "/run",
                           .resume = options.resume,
                           .engine = {.name = "lm", .unnamed = "sparse"},
                           .config = config,
                           .settings = options.settings,
                           .stop_requested = stop};
  return run_training(
      host, "lm", [&](const TrainingPlace& place) { return lm_training(place, options.modules); }, request);
}

inline void put_text(host::Disk& disk, const std::string& text = repeating_text(20)) {
  ASSERT_TRUE(disk.make_directories("/data").ok());
  run::testing::write(disk, "/data/train.txt", text);
  run::testing::write(disk, "/data/test.txt", "abcabcabcabc\nabc\n");
  ASSERT_TRUE(disk.sync_directory("/data").ok());
  ASSERT_TRUE(disk.sync_directory("/").ok());
}

// The files of a directory with their bytes.
inline std::map<std::string, std::string> files_of(host::Disk& disk, const std::string& directory) {
  std::map<std::string, std::string> files;
  const auto names = disk.list(directory);
  EXPECT_TRUE(names.ok()) << names.error().message();
  if (!names.ok()) return files;
  for (const std::string& name : *names) files[name] = *host::read_text(disk, directory + "/" + name);
  return files;
}

}  // namespace gossamer::commands::testing
