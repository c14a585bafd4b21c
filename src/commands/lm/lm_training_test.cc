// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "commands/lm/lm_memory.h"
#include "commands/lm/test_toy_stages.h"
#include "engines/pipeline/model/lm_model_file.h"
#include "host/sim/compute.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using testing::files_of;
using ::testing::HasSubstr;
using testing::put_text;
using ::testing::StartsWith;
using testing::train_lm_run;

// The model of a run that nothing disturbed.
std::map<std::string, std::string> whole_lm() {
  SimMachine machine;
  put_text(machine.disk);
  const auto done = train_lm_run(machine.host());
  EXPECT_TRUE(done.ok()) << done.error().message();
  return files_of(machine.disk, "/run/model");
}

// Claim: a run goes from a text to a measured model. All that a run directory promises is there, and the
// summary has loss, perplexity and bits per byte.
TEST(LmTraining, EndToEnd) {
  SimMachine machine;
  put_text(machine.disk);
  const auto done = train_lm_run(machine.host(), {.words = {"data.test=/data/test.txt"}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_FALSE(done->stopped);
  const json summary = json::parse(done->summary);
  EXPECT_EQ(summary["engine"], "lm");
  EXPECT_EQ(summary["steps"], 6);
  EXPECT_EQ(summary["samples"], 24);
  const json& metrics = summary["metrics"];
  EXPECT_EQ(metrics["tokens"],
            17);  // 17 bytes and an end of text, of which the first one has nothing before it
  EXPECT_DOUBLE_EQ(metrics["perplexity"], std::exp(metrics["loss"].get<double>()));
  EXPECT_DOUBLE_EQ(metrics["bits_per_byte"], metrics["loss"].get<double>() * 17 / 16 / std::log(2.0));
  EXPECT_THAT(done->figures, HasSubstr("bits per byte"));
  for (const char* name : {"run.toml", "metrics.jsonl", "events.jsonl", "curve.svg", "checkpoints", "model",
                           "data/train.tokens", "data/test.tokens", "data.sum"}) {
    EXPECT_TRUE(*machine.disk.exists(std::string("/run/") + name)) << name;
  }
  const auto model = pipeline::open_lm_model(machine.disk, "/run/model");
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->header.about.steps, 6U);
  EXPECT_EQ(model->header.about.shape.vocabulary, 257U);
  EXPECT_EQ(model->header.about.tokenizer.name, "bytes");
  EXPECT_TRUE(machine.said("data.train: "));
  EXPECT_TRUE(machine.said("of 1 document, "));
}

// Claim: a run that is stopped wherever it asks whether to stop, and goes on, ends with the bytes of one that
// never stopped.
TEST(LmTraining, GoesOnToTheSameBytes) {
  const auto right = whole_lm();
  int stopped_after_steps = 0;
  for (std::uint64_t asked = 0;; ++asked) {
    ASSERT_LT(asked, 1000U);
    SimMachine machine;
    put_text(machine.disk);
    const auto begun = train_lm_run(machine.host(), {.stop_after = asked});
    ASSERT_TRUE(begun.ok()) << begun.error().message();
    if (!begun->stopped) break;
    const bool steps = *machine.disk.exists("/run/checkpoints");
    stopped_after_steps += steps ? 1 : 0;
    EXPECT_EQ(steps, *machine.disk.exists("/run"));
    const auto ended = train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(ended.ok()) << ended.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), right) << asked;
  }
  EXPECT_GE(stopped_after_steps, 5);
}

// Claim: a power failure at any operation of the disk costs no more than steps: the run goes on, and ends
// with the same bytes.
TEST(LmTraining, APowerFailureAtAnyOperation) {
  const auto right = whole_lm();
  SimMachine rehearsal;
  put_text(rehearsal.disk);
  rehearsal.disk.restart_count({});
  ASSERT_TRUE(train_lm_run(rehearsal.host()).ok());
  const std::uint64_t operations = rehearsal.disk.operations();
  EXPECT_GT(operations, 50U);
  for (std::uint64_t at = 0; at < operations; ++at) {
    SimMachine machine;
    put_text(machine.disk);
    machine.disk.restart_count({.seed = at, .crash_at_operation = at});
    (void)train_lm_run(machine.host());
    const auto found = machine.disk.after_crash();
    const auto ended = train_lm_run(machine.host_with(*found), {.resume = run::Continue::kResume});
    ASSERT_TRUE(ended.ok()) << at << ": " << ended.error().message();
    EXPECT_EQ(files_of(*found, "/run/model"), right) << at;
  }
}

// Claim: a finished run is not trained again; where its model has lost a file or a byte, it is written again
// from the last checkpoint, with the same bytes.
TEST(LmTraining, WritesADamagedModelAgain) {
  const auto right = whole_lm();
  SimMachine machine;
  put_text(machine.disk);
  ASSERT_TRUE(train_lm_run(machine.host()).ok());
  const auto again = train_lm_run(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(machine.said("finished already"));
  for (const auto& [name, bytes] : right) {
    std::string damaged = bytes;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    run::testing::write(machine.disk, "/run/model/" + name, damaged);
    const auto mended = train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(mended.ok()) << name << ": " << mended.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), right) << name;
  }
}

// Claim: other keys give another model, so that equal bytes above say something.
TEST(LmTraining, KeysShapeTheModel) {
  const auto right = whole_lm();
  for (const char* word : {"seed=2", "train.lr=0.01", "train.steps=5"}) {
    SimMachine machine;
    put_text(machine.disk);
    ASSERT_TRUE(train_lm_run(machine.host(), {.words = {word}}).ok());
    EXPECT_NE(files_of(machine.disk, "/run/model"), right) << word;
  }
}

// Claim: run.toml has no open key after prepare(), so that a resumed run starts from all of them. But the
// number of tokens of a tokenizer stays open: a run that goes on has its tokenizer.
TEST(LmTraining, TheConfigIsResolved) {
  SimMachine machine;
  put_text(machine.disk);
  ASSERT_TRUE(train_lm_run(machine.host(), {.words = {"train.steps=0", "train.epochs=2"}}).ok());
  const std::string config = *host::read_text(machine.disk, "/run/run.toml");
  EXPECT_THAT(config, HasSubstr("engine = \"lm\""));
  const std::size_t open = config.find("\"auto\"");
  EXPECT_EQ(open, config.find("vocabulary = \"auto\"") + std::string_view("vocabulary = ").size());
  const std::size_t stages = config.find("\"auto\"", open + 1);
  EXPECT_EQ(stages, config.find("stages = \"auto\"") + std::string_view("stages = ").size());
  EXPECT_EQ(config.find("\"auto\"", stages + 1), std::string::npos);
  EXPECT_THAT(config, ::testing::Not(HasSubstr("\nsteps = 0\n")));
  const json summary = json::parse(*host::read_text(machine.disk, "/run/summary.json"));
  EXPECT_GT(summary["steps"], 6);
  EXPECT_NEAR(summary["epochs"].get<double>(), 2, 0.2);
}

// Claim: a machine without libtorch is told so before a text is read, and nothing is left behind.
TEST(LmTraining, AMissingModuleComesFirst) {
  SimMachine machine;  // without the text
  const auto refused =
      train_lm_run(machine.host(), {.modules = {.stages = testing::open_nothing, .pieces = {}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(refused.error().fix, "make torch");
  EXPECT_FALSE(*machine.disk.exists("/run"));
}

// A machine with another Compute.
run::NodeHost narrow(const run::NodeHost& host, host::Compute& compute) {
  return {.disk = host.disk,
          .clock = host.clock,
          .compute = compute,
          .kernels = host.kernels,
          .console = host.console};
}

// Claim: a model that memory cannot hold is refused before a text is read, with both figures.
TEST(LmTraining, TooLittleMemoryComesFirst) {
  SimMachine machine;
  host::SimCompute small({.workers = 1, .memory_limit_bytes = 30'000});
  const auto refused = train_lm_run(narrow(machine.host(), small));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "memory");
  EXPECT_THAT(refused.error().expected, HasSubstr("30.0 kB"));
  EXPECT_FALSE(*machine.disk.exists("/run"));
}

// Claim: a run whose graphs do not fit computes its layers again, says so, and makes the same model.
TEST(LmTraining, KeepsLessWhereMemoryIsShort) {
  SimMachine machine;
  put_text(machine.disk);
  const pipeline::LmConfig config = pipeline::lm_keys().config(testing::small_lm({}));
  host::SimCompute small(
      {.workers = 1, .memory_limit_bytes = training_bytes(config, 257, pipeline::Keep::kAll) - 1});
  testing::ToysAsked asked;
  const auto done = train_lm_run(narrow(machine.host(), small), {.modules = testing::toys_that_tell(asked)});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(machine.said("computed twice"));
  EXPECT_THAT(asked.kept, ::testing::Contains(pipeline::Keep::kLayerInputs));
  EXPECT_THAT(asked.kept, ::testing::Not(::testing::Contains(pipeline::Keep::kAll)));
  EXPECT_EQ(files_of(machine.disk, "/run/model"), whole_lm());
}

// Claim: a run whose gradient is not finite ends with the step, and is not told to go on: it would end there
// again.
TEST(LmTraining, ADivergedRunEndsForGood) {
  SimMachine machine;
  put_text(machine.disk);
  const auto diverged = train_lm_run(
      machine.host(), {.words = {"train.lr=10", "train.clip=0", "train.schedule=constant", "train.steps=300",
                                 "optimizer.epsilon=1e-30", "optimizer.weight_decay=10"}});
  ASSERT_FALSE(diverged.ok());
  EXPECT_THAT(diverged.error().where, StartsWith("step "));
  EXPECT_FALSE(machine.said("continue with"));
}

}  // namespace
}  // namespace gossamer::commands
