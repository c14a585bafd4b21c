// SPDX-License-Identifier: Apache-2.0
#include "commands/train/sparse_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "commands/predict/prediction.h"
#include "commands/train/disk_space.h"
#include "commands/train/test_small_run.h"
#include "engines/sparse/config/recipe.h"
#include "learn/data/cached_dataset.h"
#include "run/test_machine.h"
#include "tensors/checkpoint.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using testing::files_of;
using ::testing::HasSubstr;

sparse_engine::TrainConfig checkpointed_run() {
  sparse_engine::TrainConfig config = testing::small_run();
  config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 2};
  return config;
}

void put_data(host::Disk& disk) {
  ASSERT_TRUE(disk.make_directories("/data").ok());
  write(disk, "/data/train.txt", two_classes(40));
  write(disk, "/data/test.txt", two_classes(10));
  ASSERT_TRUE(disk.sync_directory("/data").ok());
  ASSERT_TRUE(disk.sync_directory("/").ok());
}

struct RunOptions {
  sparse_engine::TrainConfig config = checkpointed_run();
  run::Continue resume = run::Continue::kNo;
  std::vector<settings::KeySetting> settings = {};
  // The run is asked to stop when it has asked so often.
  std::uint64_t stop_after = UINT64_MAX;
};
Result<TrainResult> train(const run::NodeHost& host, const RunOptions& options = {}) {
  std::uint64_t asked = 0;
  const auto stop = [&] { return ++asked > options.stop_after; };
  return run_training(host, {.directory = "/run",
                             .resume = options.resume,
                             .config = options.config,
                             .settings = options.settings,
                             .stop_requested = stop});
}

// The model of a run that nothing disturbed.
std::map<std::string, std::string> reference_model() {
  SimMachine machine;
  put_data(machine.disk);
  EXPECT_TRUE(train(machine.host()).ok());
  return files_of(machine.disk, "/run/model");
}

// A run goes from files to a measured model. Everything that the run directory promises is there, and the
// summary agrees with an evaluation of the model.
TEST(TrainRun, EndToEnd) {
  SimMachine machine;
  put_data(machine.disk);
  const auto done = train(machine.host());
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_FALSE(done->stopped);
  const json summary = json::parse(done->summary);
  EXPECT_EQ(summary["steps"], 6);
  EXPECT_EQ(summary["samples"], 48);
  EXPECT_EQ(summary["parameters"], 16 * 12 + 2);
  EXPECT_TRUE(summary["since_resume"].is_null());
  EXPECT_EQ(*host::read_text(machine.disk, "/run/summary.json"), done->summary + "\n");
  for (const char* name :
       {"run.toml", "metrics.jsonl", "events.jsonl", "curve.svg", "cache", "checkpoints", "model"}) {
    EXPECT_TRUE(*machine.disk.exists(std::string("/run/") + name)) << name;
  }
  const auto model = open_model(machine.host(), "/run");
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto metrics = evaluate_model(
      machine.host(), *model, {.source = {.path = "/data/test.txt", .format = data::RecordFormat::kXmc}});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(json::parse(metrics_json(*metrics)), summary["metrics"]);
}

// A runner that does the steps as this process would, and says what others cost.
class OtherRunner final : public StepRunner {
 public:
  [[nodiscard]] std::uint64_t nodes() const override { return 3; }
  [[nodiscard]] std::uint64_t memory_needed(const sparse_engine::TrainConfig&, const sparse_engine::Recipe&,
                                            const sparse_engine::DataShape&) const override {
    return needed;
  }
  [[nodiscard]] Result<sparse_engine::TrainOutcome> train(const run::RunPaths& paths,
                                                          const sparse_engine::TrainInputs& inputs,
                                                          const engine::TrainHooks& hooks) override {
    EXPECT_EQ(paths.root, "/run");
    prepared = *inputs.disk.exists(paths.config()) && *inputs.disk.exists(paths.cache() + "/train.cache");
    return sparse_engine::train(inputs, hooks);
  }
  [[nodiscard]] StepsCost cost() const override {
    return {.cpu_seconds = 1000, .peak_rss_bytes = 1ULL << 50};
  }

  std::uint64_t needed = 0;
  bool prepared = false;
};

// A runner finds config and data in place. The model is the same, and the summary counts the cost of all. A
// lack of memory is noticed before the first step.
TEST(TrainRun, OthersMayDoTheSteps) {
  SimMachine machine;
  put_data(machine.disk);
  OtherRunner runner;
  const sparse_engine::TrainConfig config = checkpointed_run();
  const auto stop = [] { return false; };
  const auto run = [&] {
    return run_training(machine.host(), {.directory = "/run",
                                         .resume = run::Continue::kNo,
                                         .config = config,
                                         .settings = {},
                                         .stop_requested = stop,
                                         .runner = &runner});
  };
  runner.needed = 1ULL << 60;
  const auto refused = run();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "memory");
  EXPECT_FALSE(runner.prepared);
  runner.needed = 0;
  const auto done = run();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(runner.prepared);
  const json summary = json::parse(done->summary);
  EXPECT_EQ(summary["nodes"], 3);
  EXPECT_GE(summary["cpu_seconds"], 1000);
  EXPECT_EQ(summary["peak_rss_bytes"], 1ULL << 50);
  EXPECT_EQ(files_of(machine.disk, "/run/model"), reference_model());
}

// A stop while the finished model is measured does not wait for the test set. It keeps the model,
// and resuming gives the figures.
TEST(TrainRun, StopsWhileMeasuring) {
  SimMachine machine;
  put_data(machine.disk);
  std::string test = "3000 16 2\n";
  for (int i = 0; i < 3000; ++i) test += i % 2 == 0 ? "0 1:1 3:1\n" : "1 2:1 4:1\n";
  ASSERT_TRUE(host::replace_file(machine.disk, "/data/test.txt", test).ok());
  const sparse_engine::TrainConfig config = checkpointed_run();
  const auto once_saved = [&] { return *machine.disk.exists("/run/model"); };
  const auto stopped = run_training(machine.host(), {.directory = "/run",
                                                     .resume = run::Continue::kNo,
                                                     .config = config,
                                                     .settings = {},
                                                     .stop_requested = once_saved});
  ASSERT_TRUE(stopped.ok()) << stopped.error().message();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_TRUE(machine.said("stopped while measuring"));
  EXPECT_FALSE(*machine.disk.exists("/run/summary.json"));
  const auto model = files_of(machine.disk, "/run/model");
  const auto done = train(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(json::parse(done->summary)["metrics"].contains("P@1"), true);
  EXPECT_EQ(files_of(machine.disk, "/run/model"), model);
}

// A run without a test set has no figures. A finished run is not trained again but tells its summary.
TEST(TrainRun, FinishedRun) {
  SimMachine machine;
  put_data(machine.disk);
  sparse_engine::TrainConfig config = checkpointed_run();
  config.data.test.clear();
  const auto first = train(machine.host(), {.config = config});
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(json::parse(first->summary)["metrics"], json::object());
  const auto again = train(machine.host(), {.config = config, .resume = run::Continue::kResume});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->summary, first->summary);
  EXPECT_TRUE(machine.said("finished already"));
}

// A run that is asked to stop, at any place, ends stopped or done. It leaves nothing behind before its first
// step, and continues to the same model. Its times are those of both parts.
TEST(TrainRun, StopsAnywhereAndResumes) {
  const auto expected = reference_model();
  int stops = 0;
  for (std::uint64_t asked = 0; asked < 60; ++asked) {
    SCOPED_TRACE(asked);
    SimMachine machine;
    put_data(machine.disk);
    const auto stopped = train(machine.host(), {.stop_after = asked});
    ASSERT_TRUE(stopped.ok()) << stopped.error().message();
    if (!stopped->stopped) break;
    ++stops;
    EXPECT_TRUE(machine.said("--resume") != machine.said("nothing is left behind"));
    EXPECT_EQ(*machine.disk.exists("/run"), machine.said("--resume"));
    machine.clock.advance(from_seconds(1000));
    const auto done = train(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), expected);
    const json summary = json::parse(done->summary);
    EXPECT_LT(summary["train_seconds"], 1000) << "the time between the parts is not the run's";
    EXPECT_EQ(summary["since_resume"].is_object(), machine.said("--resume"));
  }
  EXPECT_GT(stops, 5) << "after each of the steps, and before";
}

// After a crash at any disk operation of the whole run, the run can be resumed to the same model. Import,
// model and evaluation are included.
TEST(TrainRun, DiesAtEveryDiskOperationAndResumes) {
  const auto expected = reference_model();
  SimMachine rehearsal;
  put_data(rehearsal.disk);
  rehearsal.disk.restart_count({});
  ASSERT_TRUE(train(rehearsal.host()).ok());
  const std::uint64_t operations = rehearsal.disk.operations();
  for (std::uint64_t k = 0; k < operations; ++k) {
    SCOPED_TRACE(k);
    SimMachine machine;
    put_data(machine.disk);
    machine.disk.restart_count({.seed = k + 1, .crash_at_operation = k});
    static_cast<void>(train(machine.host()).ok());
    const auto left = machine.disk.after_crash();
    const auto done = train(machine.host_with(*left), {.resume = run::Continue::kResume});
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_EQ(files_of(*left, "/run/model"), expected);
    EXPECT_TRUE(*left->exists("/run/summary.json"));
  }
}

// A mistake in the data or in what is asked for leaves no directory behind, and is told before the training.
TEST(TrainRun, MistakesLeaveNothing) {
  struct Mistake {
    const char* part;
    ErrorKind kind;
    std::function<void(host::Disk&, sparse_engine::TrainConfig&)> make;
  };
  const std::vector<Mistake> mistakes = {
      {"data.train", ErrorKind::kUsage, [](auto&, auto& config) { config.data.train.clear(); }},
      {"/nowhere", ErrorKind::kFailed, [](auto&, auto& config) { config.data.train = "/nowhere"; }},
      {"/nowhere", ErrorKind::kFailed, [](auto&, auto& config) { config.data.test = "/nowhere"; }},
      {"data.test", ErrorKind::kUsage, [](auto&, auto& config) { config.data.test = "-"; }},
      {"/data/train.txt:2", ErrorKind::kBadData,
       [](auto& disk, auto&) { write(disk, "/data/train.txt", "0 1:1\n0 x\n"); }},
      {"/data/test.txt:2", ErrorKind::kBadData,
       [](auto& disk, auto&) { write(disk, "/data/test.txt", "0 1:1\n0 x\n"); }},
      {"different kinds", ErrorKind::kUsage,
       [](auto& disk, auto&) { write(disk, "/data/test.txt", "{\"text\": \"a\", \"labels\": [0]}\n"); }},
      {"different kinds", ErrorKind::kUsage,
       [](auto& disk, auto&) {
         write(disk, "/data/test.txt", "{\"features\": {\"a\": 1}, \"labels\": [0]}\n");
       }},
      {"memory", ErrorKind::kFailed,
       [](auto& disk, auto&) { write(disk, "/data/train.txt", "1 10 200000000\n0 1:1\n"); }},
  };
  for (const Mistake& mistake : mistakes) {
    SimMachine machine;
    put_data(machine.disk);
    RunOptions options;
    mistake.make(machine.disk, options.config);
    const auto done = train(machine.host(), options);
    ASSERT_FALSE(done.ok()) << mistake.part;
    EXPECT_EQ(done.error().kind, mistake.kind) << done.error().message();
    EXPECT_THAT(done.error().message(), HasSubstr(mistake.part));
    EXPECT_FALSE(*machine.disk.exists("/run")) << mistake.part;
  }
}

std::string two_classes_by_name() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string word = std::to_string(i % 2);
    text += "{\"features\": {\"word " + word + "\": 1, \"noise " + std::to_string(i % 7) +
            "\": 1}, \"labels\": [\"label " + word + "\"]}\n";
  }
  return text;
}

std::string two_classes_by_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "{\"text\": \"" + std::string(i % 2 == 0 ? "deer meat" : "owl call") + " number " +
            std::to_string(i % 7) + "\", \"labels\": [\"label " + std::to_string(i % 2) + "\"]}\n";
  }
  return text;
}

std::uint64_t bytes_of(host::Disk& disk, const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : files_of(disk, directory)) bytes += content.size();
  return bytes;
}

// Sessions in which a deer is followed by its meat, and an owl by its call. Every third session has a target.
std::string sessions() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string noise = "noise" + std::to_string(i % 7);
    text += (i % 2 == 0 ? "deer " + noise + " meat" : "owl " + noise + " call");
    text += i % 3 == 0 ? "\t" + noise + "\n" : "\n";
  }
  return text;
}

// The model of a run of sessions knows how to read sessions. A stopped run goes on to the same model without
// the user's file. Test sessions are measured position by position.
TEST(TrainRun, Sessions) {
  sparse_engine::TrainConfig config = checkpointed_run();
  config.data = {.train = "/data/s", .test = "/data/s"};
  config.sessions = {.last = 3, .decay = 0.5};
  std::map<std::string, std::string> models[2];
  for (const bool interrupted : {false, true}) {
    SimMachine machine;
    ASSERT_TRUE(machine.disk.make_directories("/data/s").ok());
    write(machine.disk, "/data/s/records.sessions", sessions());
    if (interrupted) {
      const auto stopped = train(machine.host(), {.config = config, .stop_after = 4});
      ASSERT_TRUE(stopped.ok() && stopped->stopped);
    }
    const auto done = train(machine.host(), {.config = config, .resume = run::Continue::kResume});
    ASSERT_TRUE(done.ok()) << done.error().message();
    models[interrupted ? 1 : 0] = files_of(machine.disk, "/run/model");
    const auto model = open_model(machine.host(), "/run");
    ASSERT_TRUE(model.ok());
    EXPECT_EQ(model->task, "next-item");
    EXPECT_EQ(model->line, (data::LineShape{.last = 3, .decay = 0.5F}));
    const auto metrics = evaluate_model(
        machine.host(), *model,
        {.source = {.path = "/data/s/records.sessions", .format = data::RecordFormat::kSessions}});
    ASSERT_TRUE(metrics.ok()) << metrics.error().message();
    // 14 sessions ask for their target alone, 26 for their second and third items.
    EXPECT_EQ(metrics->samples, 14U + 2 * 26);
    EXPECT_EQ(json::parse(metrics_json(*metrics)), json::parse(done->summary)["metrics"]);
  }
  EXPECT_EQ(models[0], models[1]);
}

// The disk space that is computed before the training is what lies on the disk afterwards. That holds for
// every kind of features, with instances and without, and with much and little beside the weights.
TEST(TrainRun, DiskNeededIsWhatIsWritten) {
  constexpr std::uint64_t kHeaders = std::uint64_t{16} << 10;
  for (const std::string& records : {two_classes(40), two_classes_by_name(), two_classes_by_text()}) {
    for (const bool instances : {true, false}) {
      SimMachine machine;
      put_data(machine.disk);
      write(machine.disk, "/data/train.txt", records);
      RunOptions options;
      options.config.data.test.clear();
      options.config.text.min_df = 1;
      options.config.model.hidden = 512;
      options.config.predict.instances = instances;
      using enum sparse_engine::MomentsKind;
      options.config.optimizer.moments = instances ? kBlock : kElement;
      const auto done = train(machine.host(), options);
      ASSERT_TRUE(done.ok()) << done.error().message();
      const auto dataset = data::CachedDataset::open(machine.disk, "/run/cache/train.cache", machine.compute);
      ASSERT_TRUE(dataset.ok());
      const auto recipe = sparse_engine::derive_recipe(options.config, sparse_engine::shape_of(**dataset));
      const sparse_engine::DiskNeeded needed = sparse_engine::disk_needed(options.config, *recipe, **dataset);
      const std::uint64_t checkpoint = *machine.disk.file_size("/run/checkpoints/step-000000000004.ckpt");
      const std::uint64_t last = *machine.disk.file_size("/run/checkpoints/step-000000000006.ckpt");
      const std::uint64_t model = bytes_of(machine.disk, "/run/model");
      EXPECT_LE(checkpoint, needed.checkpoint);
      EXPECT_GE(checkpoint + kHeaders, needed.checkpoint);
      EXPECT_LE(last, needed.last_checkpoint);
      EXPECT_GE(last + kHeaders, needed.last_checkpoint);
      EXPECT_LE(model, needed.model);
      EXPECT_GE(model + kHeaders, needed.model);
    }
  }
}

// A run with the space that it asks for ends well, with no checkpoint missing. With less it is refused before
// the first step and leaves nothing behind. The message has what is needed and what is free.
TEST(TrainRun, AsksForTheSpaceItNeeds) {
  SimMachine machine;
  put_data(machine.disk);
  const std::uint64_t before = host::SimDiskOptions{}.capacity_bytes - *machine.disk.free_bytes("/");
  RunOptions options;
  options.config.model.hidden = 4096;          // a checkpoint is larger than what is kept free for logs
  std::uint64_t refused = before;              // the largest capacity that was refused
  std::uint64_t enough = before + 20'000'000;  // the smallest that was not
  while (enough - refused > 1) {
    const std::uint64_t capacity = (refused + enough) / 2;
    SimMachine small;
    put_data(small.disk);
    small.disk.restart_count({.capacity_bytes = capacity});
    const auto done = train(small.host(), options);
    if (done.ok()) {
      enough = capacity;
      EXPECT_THAT(*host::read_text(small.disk, "/run/events.jsonl"), Not(HasSubstr("checkpoint_failed")));
      continue;
    }
    refused = capacity;
    EXPECT_EQ(done.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(done.error().what, HasSubstr("too small")) << capacity << " " << done.error().message();
    EXPECT_FALSE(*small.disk.exists("/run")) << capacity;
  }
  EXPECT_LT(enough, before + 20'000'000);
}

// A disk that fills up all the same, because others write too, ends the run with the
// cause. The run can be resumed.
TEST(TrainRun, DiskRunsFull) {
  const auto expected = reference_model();
  SimMachine machine;
  put_data(machine.disk);
  bool full = false;
  std::uint64_t asked = 0;
  const auto fill = [&] {
    if (!full && ++asked > 3 && *machine.disk.exists("/run/checkpoints/step-000000000004.ckpt")) {
      const std::uint64_t used = host::SimDiskOptions{}.capacity_bytes - *machine.disk.free_bytes("/");
      machine.disk.restart_count({.capacity_bytes = used});
      full = true;
    }
    return false;
  };
  const sparse_engine::TrainConfig config = checkpointed_run();
  const auto failed = run_training(machine.host(), {.directory = "/run",
                                                    .resume = run::Continue::kNo,
                                                    .config = config,
                                                    .settings = {},
                                                    .stop_requested = fill});
  ASSERT_TRUE(full);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(failed.error().message(), HasSubstr("/run/model"));
  machine.disk.restart_count({});
  const auto done = train(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(files_of(machine.disk, "/run/model"), expected);
}

}  // namespace
}  // namespace gossamer::commands
