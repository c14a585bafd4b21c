// SPDX-License-Identifier: Apache-2.0
//
// Runs that lose their model, diverge, or get data that does not fit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands/predict/prediction.h"
#include "commands/run/train_run.h"
#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "host/api/files.h"
#include "run/lead_file.h"
#include "run/test_machine.h"
#include "tensors/checkpoint.h"
#include "tensors/fleet_files.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using testing::files_of;
using ::testing::HasSubstr;

Result<TrainResult> train_on(SimMachine& machine, const sparse_engine::TrainConfig& config,
                             run::Continue resume = run::Continue::kNo) {
  const auto goes_on = [] { return false; };
  return run_training(
      machine.host(),
      {.directory = "/run", .resume = resume, .config = config, .settings = {}, .stop_requested = goes_on});
}

void put_two_classes(SimMachine& machine) {
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  write(machine.disk, "/data/train.txt", two_classes(40));
  write(machine.disk, "/data/test.txt", two_classes(10));
}

// Claim: a finished run writes its model again, byte by byte, whichever of its files is gone. The summary
// stays as it is, and so do files of the user's. Without a checkpoint of the last step the error is kBadData.
// It names the step that is left and the file that is gone, and nothing is trained.
TEST(TrainRun, WritesALostModelAgain) {
  SimMachine machine;
  put_two_classes(machine);
  sparse_engine::TrainConfig config = testing::small_run();
  config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
  const auto first = train_on(machine, config);
  ASSERT_TRUE(first.ok()) << first.error().message();
  const auto model = files_of(machine.disk, "/run/model");
  std::vector<std::string> gone = {"/run/model"};
  for (const auto& [name, bytes] : model) gone.push_back("/run/model/" + name);
  for (const std::string& path : gone) {
    ASSERT_TRUE(machine.disk.remove_all(path).ok());
    EXPECT_THAT(open_model(machine.host(), "/run").error().message(),
                HasSubstr("write the model again: gossamer train --resume --out /run"))
        << path;
    const auto again = train_on(machine, config, run::Continue::kResume);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), model) << path;
    EXPECT_EQ(again->summary, first->summary);
  }
  write(machine.disk, "/run/model/NOTES.txt", "years of work");
  write(machine.disk, "/run/model/model.json", "{");
  EXPECT_THAT(open_model(machine.host(), "/run").error().message(),
              HasSubstr("; write the model again: gossamer train --resume --out /run"));
  EXPECT_THAT(open_model(machine.host(), "/run/model").error().message(), HasSubstr("restore the model"));
  ASSERT_TRUE(train_on(machine, config, run::Continue::kResume).ok());
  EXPECT_EQ(files_of(machine.disk, "/run/model"), model);
  EXPECT_EQ(*host::read_text(machine.disk, fmt::format("/run/model.damaged-{}/NOTES.txt", gone.size())),
            "years of work");
  ASSERT_TRUE(machine.disk.remove_all("/run/checkpoints/step-000000000006.ckpt").ok());
  write(machine.disk, "/run/model/model.json", "{");
  EXPECT_THAT(open_model(machine.host(), "/run").error().fix,
              HasSubstr("restore the model from a copy, or train its last"));
  ASSERT_TRUE(machine.disk.remove_all("/run/model/model.json").ok());
  EXPECT_THAT(open_model(machine.host(), "/run").error().fix,
              HasSubstr("restore the model from a copy, or train its last"));
  const auto refused = train_on(machine, config, run::Continue::kResume);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(refused.error().message(), HasSubstr("/run/model/model.json"));
  EXPECT_THAT(refused.error().message(), HasSubstr("train again from step 5: rm /run/summary.json, then: "));
  EXPECT_FALSE(*machine.disk.exists("/run/model/model.json"));
}

// Claim: a finished run whose last checkpoint is damaged is refused as one without it: nothing is trained
// anew, and the model's place, the summary and the curve's figures stay as they are. The same holds where
// files of a fleet look whole, and cannot be gone on from.
TEST(TrainRun, TrainsNothingAnewUnasked) {
  for (const bool of_a_fleet : {false, true}) {
    SCOPED_TRACE(of_a_fleet);
    SimMachine machine;
    put_two_classes(machine);
    sparse_engine::TrainConfig config = testing::small_run();
    config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
    ASSERT_TRUE(train_on(machine, config).ok());
    const std::string last = "/run/checkpoints/step-000000000006.ckpt";
    tensors::CheckpointInfo info = **tensors::newest_checkpoint(machine.disk, "/run/checkpoints");
    info.config_fingerprint.resize(info.config_fingerprint.rfind('-'));
    std::string bytes = *host::read_text(machine.disk, last);
    bytes[100] = static_cast<char>(bytes[100] ^ 1);
    write(machine.disk, last, bytes);
    if (of_a_fleet) {
      ASSERT_TRUE(machine.disk.remove_all(last).ok());
      ASSERT_TRUE(tensors::write_fleet_file(machine.disk, "/run/checkpoints", NodeId(3), info, {}).ok());
    }
    ASSERT_TRUE(machine.disk.remove_all("/run/model").ok());
    const auto metrics = *host::read_text(machine.disk, "/run/metrics.jsonl");
    const auto refused = train_on(machine, config, run::Continue::kResume);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData) << refused.error().message();
    EXPECT_THAT(refused.error().message(),
                HasSubstr(of_a_fleet ? "train again from step 6: rm" : "train again from step 5: rm"));
    EXPECT_EQ(machine.said("the model is written again"), of_a_fleet);
    EXPECT_FALSE(machine.said("begins again"));
    EXPECT_FALSE(*machine.disk.exists("/run/model"));
    EXPECT_EQ(*host::read_text(machine.disk, "/run/metrics.jsonl"), metrics);
  }
}

// A quiet run whose disk is full from one step on. Each question whether it is to stop takes a second.
struct FullDisk {
  std::uint64_t full_from = 3;
  std::uint64_t room_at = 1'000'000;  // that question
  std::uint64_t stop_at = 1'000'000;
  SimMachine machine = {};
  std::uint64_t asked = 0;  // after steps, and while the model cannot be written

  [[nodiscard]] bool stops() {
    machine.clock.advance(from_seconds(1));
    if (!*machine.disk.exists("/run/checkpoints")) return false;
    ++asked;
    if (asked == full_from) machine.disk.restart_count({.capacity_bytes = 1});
    if (asked == room_at) machine.disk.restart_count({});
    return asked >= stop_at;
  }
  Result<TrainResult> run() {
    put_two_classes(machine);
    sparse_engine::TrainConfig config = testing::small_run();
    config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
    const auto stop = [this] { return stops(); };
    run::NodeHost host = machine.host();
    host.verbosity = run::Verbosity::kQuiet;
    return run_training(host, {.directory = "/run",
                               .resume = run::Continue::kNo,
                               .config = config,
                               .settings = {},
                               .stop_requested = stop,
                               .model_patience = kModelPatience});
  }
};

// Claim: a full disk is warned of at the first checkpoint that it costs, once. The model is tried again until
// there is room, and then the run is finished.
TEST(TrainRun, WaitsForRoomForTheModel) {
  FullDisk full{.room_at = 20};
  const auto done = full.run();
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_FALSE(done->stopped);
  EXPECT_TRUE(full.machine.said("warning: no checkpoint of step 4: ")) << full.machine.console.text;
  EXPECT_FALSE(full.machine.said("no checkpoint of step 6"));
  EXPECT_TRUE(full.machine.said("warning: the model cannot be written: ")) << full.machine.console.text;
  EXPECT_GE(full.asked, 20U);
  EXPECT_TRUE(*full.machine.disk.exists("/run/model/model.json"));
}

// Claim: where no room comes, the run ends after half a minute, or at once where it is to stop. It says, also
// when quiet, how many steps are lost with this process, and how it goes on.
TEST(TrainRun, TellsWhatAFullDiskHasCost) {
  struct Case {
    std::uint64_t full_from;
    std::uint64_t stop_at;
    std::uint64_t asked;
    std::string_view warning;
  };
  for (const Case& one :
       {Case{3, 1000, 36, "warning: the newest checkpoint is of step 2: --resume does 4 steps again\n"},
        Case{1, 1000, 36,
             "warning: there is no checkpoint: --resume begins at step 1, and does 6 steps again\n"},
        Case{3, 9, 9, "warning: the newest checkpoint is of step 2: --resume does 4 steps again\n"},
        Case{3, 5, 5, "warning: the newest checkpoint is of step 2: --resume does 3 steps again\n"}}) {
    FullDisk full{.full_from = one.full_from, .stop_at = one.stop_at};
    const auto done = full.run();
    ASSERT_FALSE(done.ok());
    EXPECT_THAT(done.error().message(), HasSubstr("No space left"));
    EXPECT_THAT(full.machine.console.text, HasSubstr(one.warning));
    EXPECT_TRUE(full.machine.said("once the cause is mended, continue with: gossamer train --resume"));
    EXPECT_NEAR(static_cast<double>(full.asked), static_cast<double>(one.asked), 1);
  }
}

// Claim: how a stopped run goes on is said also when quiet.
TEST(TrainRun, TellsHowItGoesOnWhenQuiet) {
  FullDisk enough{.full_from = 1'000'000, .stop_at = 3};
  const auto done = enough.run();
  ASSERT_TRUE(done.ok() && done->stopped);
  EXPECT_EQ(enough.machine.console.text, "stopped after step 3; continue with: gossamer train --resume\n");
}

// Claim: a run that goes on says at which step. Where checkpoints are damaged it names them by their paths,
// also when quiet, and where none is left it says that it begins again. A new run says nothing of this.
TEST(TrainRun, TellsWhereItGoesOn) {
  SimMachine machine;
  put_two_classes(machine);
  sparse_engine::TrainConfig config = testing::small_run();
  config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
  ASSERT_TRUE(train_on(machine, config).ok());
  EXPECT_FALSE(machine.said("goes on at step"));
  EXPECT_FALSE(machine.said("begins again"));
  const std::string checkpoints = "/run/checkpoints";
  const auto names = *machine.disk.list(checkpoints);
  ASSERT_EQ(names.size(), 3U);
  const std::vector<std::string> goes_on = {"goes on at step 6\n", "warning: the run goes on at step 4\n",
                                            "has no whole checkpoint of this run: it begins again"};
  for (std::size_t damaged = 0; damaged < 3; ++damaged) {
    ASSERT_TRUE(machine.disk.remove_all("/run/summary.json").ok());
    if (damaged == 1) write(machine.disk, checkpoints + "/step-000000000006.ckpt", "not a checkpoint");
    if (damaged == 2) {
      ASSERT_TRUE(machine.disk.remove_all(checkpoints).ok());
    }
    machine.console.text.clear();
    ASSERT_TRUE(train_on(machine, config, run::Continue::kResume).ok());
    EXPECT_TRUE(machine.said(goes_on[damaged])) << machine.console.text;
    EXPECT_EQ(machine.said("warning: /run/checkpoints/step-000000000006.ckpt is damaged"), damaged == 1);
  }
}

// Claim: a model of another version is no damage. It stays as it is, and the error says what reads it.
TEST(TrainRun, LeavesAModelOfAnotherVersion) {
  SimMachine machine;
  put_two_classes(machine);
  const sparse_engine::TrainConfig config = testing::small_run();
  ASSERT_TRUE(train_on(machine, config).ok());
  write(machine.disk, "/run/model/model.json", R"({"format": 1000})");
  const auto model = files_of(machine.disk, "/run/model");
  const auto again = train_on(machine, config, run::Continue::kResume);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(files_of(machine.disk, "/run/model"), model);
}

// Claim: a run that diverges ends with the words of a fleet and the step, and writes no model. A weight is no
// number after the first step here, and the loss with the second. No checkpoint of such a weight is written,
// and nobody is told to go on.
TEST(TrainRun, EndsWhereItDiverges) {
  for (const bool saves : {true, false}) {
    SCOPED_TRACE(saves);
    SimMachine machine;
    put_two_classes(machine);
    write(machine.disk, "/data/train.txt", "2 2 2\n0 0:3e38\n0 0:3e38\n");
    sparse_engine::TrainConfig config = testing::small_run();
    config.data.test.clear();
    config.data.weighting = sparse_engine::Weighting::kNone;
    config.checkpoint = {.every_steps = saves ? 1U : 100U, .every_minutes = 0, .keep = 3};
    const auto done = train_on(machine, config);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(done.error().where, saves ? "step 1" : "step 2");
    EXPECT_EQ(done.error().what, "the network has diverged");
    EXPECT_THAT(done.error().got, HasSubstr(saves ? "a weight" : "a loss"));
    EXPECT_THAT(done.error().fix, HasSubstr("smaller train.lr"));
    EXPECT_FALSE(machine.said("continue with")) << machine.console.text;
    EXPECT_FALSE(*machine.disk.exists("/run/model"));
    EXPECT_FALSE(*machine.disk.exists("/run/summary.json"));
    EXPECT_TRUE(files_of(machine.disk, "/run/checkpoints").empty());
  }
}

// Claim: records without a label are counted, and the keys beside 'labels' are named. Where all have one,
// nothing is said.
TEST(TrainRun, CountsRecordsWithoutALabel) {
  for (const bool typo : {false, true}) {
    SimMachine machine;
    ASSERT_TRUE(machine.disk.make_directories("/data").ok());
    std::string text;
    for (int i = 0; i < 20; ++i)
      text += std::string(R"({"text": "a word)") + (i % 2 == 0 ? "s" : "t") + R"(", ")" +
              (typo && i % 4 == 0 ? "lables" : "labels") + R"(": [")" + (i % 2 == 0 ? "A" : "B") + "\"]}\n";
    write(machine.disk, "/data/train.txt", text);
    sparse_engine::TrainConfig config = testing::small_run();
    config.data.test.clear();
    const auto done = train_on(machine, config);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(machine.said("5 of 20 records have no label"), typo) << machine.console.text;
    EXPECT_EQ(machine.said("the keys 'lables'"), typo);
  }
}

// Claim: a test set that numbers its labels, where the training records name them, is refused before the
// first step, and nothing is left behind.
TEST(TrainRun, RefusesOtherLabelsAtTheStart) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  std::string named;
  for (int i = 0; i < 20; ++i)
    named += R"({"text": "a word", "labels": ["A"]})"
             "\n";
  write(machine.disk, "/data/train.txt", named);
  write(machine.disk, "/data/test.txt",
        R"({"text": "a word", "labels": [0]})"
        "\n");
  const auto done = train_on(machine, testing::small_run());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(done.error().where, "/data/test.txt");
  EXPECT_FALSE(*machine.disk.exists("/run"));
}

// Claim: a run that goes on with another number of threads than before says so, with both numbers. With the
// same number it says nothing.
TEST(TrainRun, TellsOfOtherThreads) {
  for (const int workers : {2, 3}) {
    SimMachine machine;
    put_two_classes(machine);
    int asked = 0;
    const auto soon = [&asked] { return ++asked > 3; };
    const auto never = [] { return false; };
    const auto begun = run_training(machine.host(), {.directory = "/run",
                                                     .resume = run::Continue::kNo,
                                                     .config = testing::small_run(),
                                                     .settings = {},
                                                     .stop_requested = soon});
    ASSERT_TRUE(begun.ok() && begun->stopped) << machine.console.text;
    host::SimCompute other({.workers = workers});
    const run::NodeHost host{.disk = machine.disk,
                             .clock = machine.clock,
                             .compute = other,
                             .kernels = kernels::kernels_for(kernels::best_isa()),
                             .console = machine.console};
    const auto done = run_training(host, {.directory = "/run",
                                          .resume = run::Continue::kResume,
                                          .config = testing::small_run(),
                                          .settings = {},
                                          .stop_requested = never});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(machine.said("done with 2 threads so far, and goes on with 3"), workers == 3);
    EXPECT_EQ(machine.said("the same bits: --threads 2"), workers == 3);
  }
}

// Claim: of a run by several nodes only the threads of one node count. Two nodes share five threads as they
// share four. With other nodes than before, all threads are compared.
TEST(TrainRun, ComparesTheThreadsOfANode) {
  struct Case {
    int workers;
    std::size_t nodes;
    bool told;
  };
  for (const Case& one : {Case{5, 2, false}, Case{6, 2, true}, Case{6, 3, true}}) {
    SimMachine machine;
    put_two_classes(machine);
    int asked = 0;
    const auto train = [&](run::Continue resume, int workers, std::size_t nodes, int stop_after) {
      host::SimCompute compute({.workers = workers});
      const run::NodeHost host = machine.host();
      const run::NodeHost with{.disk = host.disk,
                               .clock = host.clock,
                               .compute = compute,
                               .kernels = host.kernels,
                               .console = host.console};
      const auto stop = [&] { return ++asked > stop_after; };
      RunRequest request{.directory = "/run",
                         .resume = resume,
                         .engine = {.name = "sparse", .unnamed = "sparse"},
                         .config = sparse_engine::train_keys().values(testing::small_run()),
                         .settings = {},
                         .stop_requested = stop};
      request.lead.emplace();
      request.lead->own = OwnNodes{.nodes = nodes, .threads_each = static_cast<std::size_t>(workers) / nodes};
      const auto alone = [](const TrainingPlace& place) { return sparse_training(place, nullptr); };
      const auto done = run_training(with, "sparse", alone, request);
      ASSERT_TRUE(done.ok()) << done.error().message();
    };
    train(run::Continue::kNo, 4, 2, 3);
    ASSERT_TRUE(machine.disk.make_directories("/run/nodes/coordinator").ok());
    run::LeadFile file;
    file.engine = "sparse";
    file.nodes = 2;
    ASSERT_TRUE(run::keep_lead_file(machine.disk, "/run/nodes/coordinator", file).ok());
    train(run::Continue::kResume, one.workers, one.nodes, 1000);
    EXPECT_EQ(machine.said("done with 4 threads so far"), one.told) << one.workers << " " << one.nodes;
  }
}

// Claim: what a run with a test set has measured comes back as text for people, and nothing without one.
TEST(TrainRun, GivesItsFigures) {
  for (const bool tested : {false, true}) {
    SimMachine machine;
    put_two_classes(machine);
    sparse_engine::TrainConfig config = testing::small_run();
    if (!tested) config.data.test.clear();
    const auto done = train_on(machine, config);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(done->figures.find("P@1") != std::string::npos, tested) << done->figures;
  }
}

// Claim: a failure after the model was written says where it is. One before does not.
TEST(TrainRun, TellsWhereTheModelIs) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  std::string named;
  for (int i = 0; i < 20; ++i) named += "{\"text\": \"a word\", \"labels\": [\"A\"]}\n";
  write(machine.disk, "/data/train.txt", named);
  write(machine.disk, "/data/test.txt",
        "{\"text\": \"a word\", \"labels\": [\"A\"]}\n{\"text\": \"a\", \"labels\": [0]}\n");
  const auto done = train_on(machine, testing::small_run());
  ASSERT_FALSE(done.ok());
  EXPECT_TRUE(machine.said("the model is in /run/model")) << machine.console.text << done.error().message();
  EXPECT_TRUE(*machine.disk.exists("/run/model/model.json"));
}

}  // namespace
}  // namespace gossamer::commands
