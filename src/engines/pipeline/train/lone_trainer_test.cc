// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/train/lone_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engines/pipeline/train/test_tiny_text.h"
#include "host/sim/disk.h"

namespace gossamer::pipeline {
namespace {

using testing::HasSubstr;

TrainerOptions tiny_options() {
  return {
      .batch = 6, .microbatch = 2, .schedule = {.peak = 0.02, .warmup = 3, .steps = 40, .floor_share = 0.1}};
}

// A model, its text and its trainer.
struct TinyRun {
  std::unique_ptr<tokens::TokenFile> file = TinyText::file(100);
  tokens::TokenWindows windows = *tokens::TokenWindows::cut(*file, {.context = 6, .seed = 3});
  std::unique_ptr<StageBackend> model = TinyText::model();
  LoneTrainer trainer;

  explicit TinyRun(const TrainerOptions& options = tiny_options()) : trainer(*model, windows, options) {}

  StepDone step(std::uint64_t step) {
    const Result<StepDone> done = trainer.take_step(StepNumber(step));
    EXPECT_TRUE(done.ok());
    return done.ok() ? *done : StepDone{};
  }
  [[nodiscard]] std::span<double> weights(std::size_t tensor) const {
    return std::get<std::span<double>>(model->tensors()[tensor].weights);
  }
};

// Claim: the loss falls from that of an unknown text to less than a third of it.
TEST(LoneTrainer, Learns) {
  TinyRun run;
  const StepDone first = run.step(0);
  EXPECT_EQ(first.tokens, 36U);
  EXPECT_FALSE(first.skipped);
  EXPECT_DOUBLE_EQ(first.rate, 0.02 / 4);
  StepDone last;
  for (std::uint64_t step = 1; step < 40; ++step) last = run.step(step);
  EXPECT_LT(last.loss, first.loss / 3);
  EXPECT_DOUBLE_EQ(last.rate, 0.002);
}

// Claim: how a step is cut into microbatches changes nothing but the order of sums, whatever is left for the
// last one; and what a task keeps changes no bit.
TEST(LoneTrainer, MicrobatchesAreOneStep) {
  TinyRun whole({.batch = 6, .microbatch = 6, .schedule = {.peak = 0.02, .steps = 9}});
  for (std::uint64_t step = 0; step < 9; ++step) whole.step(step);
  for (const std::uint32_t microbatch : {1U, 4U, 100U}) {
    TinyRun run({.batch = 6, .microbatch = microbatch, .schedule = {.peak = 0.02, .steps = 9}});
    TinyRun other(
        {.batch = 6, .microbatch = microbatch, .schedule = {.peak = 0.02, .steps = 9}, .keep = Keep::kInput});
    for (std::uint64_t step = 0; step < 9; ++step) {
      EXPECT_EQ(run.step(step).loss, other.step(step).loss);
    }
    EXPECT_EQ(run.trainer.root(), other.trainer.root());
    for (std::size_t i = 0; i < run.model->tensors().size(); ++i) {
      for (std::size_t j = 0; j < run.weights(i).size(); ++j)
        EXPECT_NEAR(run.weights(i)[j], whole.weights(i)[j], 1e-11);
    }
  }
}

// Claim: a step takes the windows of its sample ids: over a pass each window once.
TEST(LoneTrainer, TakesEachWindowOnceAPass) {
  // 16 windows in a pass, 8 in a step. Without a rate the weights stay, so losses add up to that of all
  // windows.
  const TrainerOptions still{.batch = 8, .microbatch = 3, .schedule = {.peak = 0, .steps = 4}};
  TinyRun run(still);
  ASSERT_EQ(run.windows.windows(), 16U);
  const double first = run.step(0).loss + run.step(1).loss;
  const double second = run.step(2).loss + run.step(3).loss;
  EXPECT_NEAR(first, second, 1e-12);
  EXPECT_NE(run.step(0).loss, run.step(2).loss);
}

// Claim: a run that goes on from a checkpoint ends with the bits of a run that was never stopped.
TEST(LoneTrainer, GoesOnFromACheckpoint) {
  TinyRun whole;
  for (std::uint64_t step = 0; step < 20; ++step) whole.step(step);
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("run").ok());
  {
    TinyRun run;
    for (std::uint64_t step = 0; step < 12; ++step) run.step(step);
    ASSERT_TRUE(tensors::save_checkpoint(
                    disk, "run", {.next_step = StepNumber(12), .run_id = {}, .config_fingerprint = {}},
                    run.trainer.state(), 1)
                    .ok());
  }
  TinyRun resumed;
  for (const std::size_t i : {0U, 3U}) resumed.weights(i)[0] = 99;  // not the first weights
  const std::vector<tensors::NamedTensor> state = resumed.trainer.state();
  const auto events = [](std::string_view, const EventFields&) {};
  const auto info = tensors::load_newest_checkpoint(disk, "run", "", state, events);
  ASSERT_TRUE(info.ok() && info->has_value());
  ASSERT_TRUE(resumed.trainer.state_changed().ok());
  for (std::uint64_t step = (*info)->next_step.value; step < 20; ++step) resumed.step(step);
  EXPECT_EQ(resumed.trainer.root(), whole.trainer.root());
}

// Claim: the gradient's norm is bounded by `clip`: a run with a tiny bound goes on, and its norm is told
// before the bound.
TEST(LoneTrainer, ClipsTheGradient) {
  TrainerOptions options = tiny_options();
  options.adamw.weight_decay = 0;
  options.clip = 0;
  TinyRun free(options);
  options.clip = 1e-3;
  TinyRun bound(options);
  EXPECT_DOUBLE_EQ(free.step(0).norm, bound.step(0).norm);
  EXPECT_GT(free.step(1).norm, 1e-3);
  // Adam moves alike with scaled gradients, so the moments show the bound.
  double squares = 0;
  for (const tensors::NamedTensor& tensor : bound.trainer.state()) {
    if (!tensor.name.ends_with(":first")) continue;
    const auto* first = reinterpret_cast<const double*>(tensor.bytes.data());
    for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(double); ++i) squares += first[i] * first[i];
  }
  EXPECT_NEAR(std::sqrt(squares), 0.1 * 1e-3,
              2e-6);  // after one step: (1 - beta1) times the clipped gradient
}

// Claim: a step whose gradient is not finite changes nothing. The run ends, and names the step and the
// windows of the microbatch that did it; or the step is left out. Nothing of it is left in the next step.
TEST(LoneTrainer, AGradientThatIsNotFinite) {
  std::vector<tokens::TokenId> text(97, 1);
  text[50] = 5;  // in window 8 alone, and the sixth token of the vocabulary
  const auto file = TinyText::file(text);
  const auto windows = *tokens::TokenWindows::cut(*file, {.context = 6, .seed = 3});
  for (const BadSteps bad_steps : {BadSteps::kStop, BadSteps::kSkip}) {
    TrainerOptions options = tiny_options();
    options.batch = 16;  // all windows
    options.microbatch = 1;
    options.bad_steps = bad_steps;
    const TinyRun run;
    double& weight = run.weights(0)[std::size_t{5} * 8];  // an element of that token's embedding
    weight = std::numeric_limits<double>::infinity();
    LoneTrainer trainer(*run.model, windows, options);
    const std::uint64_t before = trainer.root();
    const Result<StepDone> done = trainer.take_step(StepNumber(0));
    EXPECT_EQ(done.ok(), bad_steps == BadSteps::kSkip);
    if (done.ok()) {
      EXPECT_TRUE(done->skipped);
    } else {
      EXPECT_EQ(done.error().where, "step 0");
      EXPECT_TRUE(tells_of_no_finite_gradient(done.error()));
      EXPECT_FALSE(tells_of_no_finite_gradient({.what = "the disk is full"}));
      EXPECT_TRUE(done.error().got.ends_with("over window 8")) << done.error().got;
      EXPECT_THAT(done.error().fix, HasSubstr("train.skip_bad=true"));
    }
    ASSERT_TRUE(trainer.state_changed().ok());
    EXPECT_EQ(trainer.root(), before);
    const TinyRun fresh;
    weight = fresh.weights(0)[std::size_t{5} * 8] = 0.5;
    LoneTrainer other(*fresh.model, windows, options);
    ASSERT_TRUE(trainer.take_step(StepNumber(1)).ok() && other.take_step(StepNumber(1)).ok());
    EXPECT_EQ(trainer.root(), other.root());
  }
}

// A model whose tasks fail at one call, counted over all of them.
class FailingModel final : public StageBackend {
 public:
  explicit FailingModel(int at) : at_(at), model_(TinyText::model()) {}

  [[nodiscard]] const StageCut& cut() const override { return model_->cut(); }
  [[nodiscard]] std::uint32_t width() const override { return model_->width(); }
  [[nodiscard]] std::uint32_t vocabulary() const override { return model_->vocabulary(); }
  [[nodiscard]] std::uint32_t context() const override { return model_->context(); }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return model_->tensors(); }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch& microbatch, Keep keep) override {
    if (fails()) return Error{.what = "no memory"};
    return std::unique_ptr<StageTask>(std::make_unique<Task>(*this, *model_->begin(microbatch, keep)));
  }
  [[nodiscard]] Result<std::vector<double>> next_scores(std::span<const TokenNumber> window) override {
    return model_->next_scores(window);
  }
  [[nodiscard]] Result<void> weights_changed() override { return model_->weights_changed(); }
  [[nodiscard]] int calls() const { return calls_; }
  // Products of a layer waited while the next one was passed.
  [[nodiscard]] bool waited() const { return waited_; }

 private:
  struct Task final : StageTask {
    Task(FailingModel& of, std::unique_ptr<StageTask> real_task) : model(of), task(std::move(real_task)) {}

    Result<bool> next(Result<bool> (StageTask::*call)()) {
      if (model.fails()) return Error{.what = "no memory"};
      return ((*task).*call)();
    }
    Result<bool> forward_next() override { return next(&StageTask::forward_next); }
    Result<bool> backward_next() override {
      model.waited_ = model.waited_ || task->can_add();
      return next(&StageTask::backward_next);
    }
    Result<bool> add_next() override { return next(&StageTask::add_next); }
    Result<void> begin_backward(std::optional<ConstNumbers> gradient) override {
      if (model.fails()) return Error{.what = "no memory"};
      return task->begin_backward(gradient);
    }
    [[nodiscard]] ConstNumbers output() const override { return task->output(); }
    [[nodiscard]] LossSum loss() const override { return task->loss(); }
    [[nodiscard]] ConstNumbers input_gradient() const override { return task->input_gradient(); }
    [[nodiscard]] bool can_add() const override { return task->can_add(); }
    void keep_less(Keep keep) override { task->keep_less(keep); }
    [[nodiscard]] std::uint64_t bytes() const override { return task->bytes(); }

    FailingModel& model;
    std::unique_ptr<StageTask> task;
  };
  bool fails() { return calls_++ == at_; }

  int at_;
  int calls_ = 0;
  bool waited_ = false;
  std::unique_ptr<StageBackend> model_;
};

// Claim: no product waits for another layer, for it takes memory.
TEST(LoneTrainer, AddsProductsAtOnce) {
  const TinyRun run;
  FailingModel model(-1);
  LoneTrainer trainer(model, run.windows, tiny_options());
  ASSERT_TRUE(trainer.take_step(StepNumber(0)).ok());
  EXPECT_FALSE(model.waited());
}

// Claim: wherever the backend fails in a step, the step fails, changes nothing, and leaves nothing for the
// next one.
TEST(LoneTrainer, AFailureLeavesNothing) {
  TinyRun right;
  right.step(0);
  FailingModel counting(-1);
  LoneTrainer counted(counting, right.windows, tiny_options());
  ASSERT_TRUE(counted.take_step(StepNumber(0)).ok());
  EXPECT_EQ(counted.root(), right.trainer.root());
  for (int at = 0; at < counting.calls(); ++at) {
    FailingModel model(at);
    LoneTrainer trainer(model, right.windows, tiny_options());
    const std::uint64_t before = trainer.root();
    const Result<StepDone> failed = trainer.take_step(StepNumber(0));
    ASSERT_FALSE(failed.ok()) << at;
    EXPECT_EQ(failed.error().what, "no memory");
    EXPECT_EQ(trainer.root(), before);
    ASSERT_TRUE(trainer.take_step(StepNumber(0)).ok());
    EXPECT_EQ(trainer.root(), right.trainer.root()) << at;
  }
}

}  // namespace
}  // namespace gossamer::pipeline
