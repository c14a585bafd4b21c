// SPDX-License-Identifier: Apache-2.0
//
// Runs whose data, or their copy of it, is damaged, gone or changed when they go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "commands/records/record_import.h"
#include "commands/run/train_run.h"
#include "commands/train/samples.h"
#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "kernels/isa.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::two_classes;
using run::testing::write;
using testing::files_of;
using ::testing::HasSubstr;

// A run that is to do its last steps again, whose copy of its data has lost its end.
struct DamagedCopy {
  SimMachine machine = {};
  sparse_engine::TrainConfig config = testing::small_run();
  std::map<std::string, std::string> model = {};
  std::string cache = {};

  DamagedCopy() {
    EXPECT_TRUE(machine.disk.make_directories("/data").ok());
    write(machine.disk, "/data/train.txt", two_classes(40));
    write(machine.disk, "/data/test.txt", two_classes(10));
    config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
    EXPECT_TRUE(train(run::Continue::kNo).ok());
    model = files_of(machine.disk, "/run/model");
    cache = *host::read_text(machine.disk, "/run/cache/train.cache");
    EXPECT_TRUE(machine.disk.remove_all("/run/summary.json").ok());
    cut();
  }
  void cut() { write(machine.disk, "/run/cache/train.cache", cache.substr(0, cache.size() / 2)); }
  Result<TrainResult> train(run::Continue resume) {
    const auto goes_on = [] { return false; };
    return run_training(
        machine.host(),
        {.directory = "/run", .resume = resume, .config = config, .settings = {}, .stop_requested = goes_on});
  }
  Result<TrainResult> resume() { return train(run::Continue::kResume); }
};

// Claim: what a run keeps of its data is made anew where it is damaged, with a warning, and the run ends as
// without the damage.
TEST(TrainRun, ReadsItsDataAgain) {
  DamagedCopy run;
  ASSERT_TRUE(run.resume().ok());
  EXPECT_TRUE(
      run.machine.said("warning: what the run kept of its data is damaged, and /data/train.txt is read"));
  EXPECT_EQ(*host::read_text(run.machine.disk, "/run/cache/train.cache"), run.cache);
  EXPECT_EQ(files_of(run.machine.disk, "/run/model"), run.model);
}

// Claim: where the user's file is gone the error says where it has to be. Where a run of an earlier version
// has kept no checksum, nobody knows whether the file is the same: it is read only where the user says so.
TEST(TrainRun, ReadsNoUnknownDataAgain) {
  DamagedCopy gone;
  ASSERT_TRUE(gone.machine.disk.remove_all("/data/train.txt").ok());
  const auto missing = gone.resume();
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(), HasSubstr("/run/cache/train.cache"));
  EXPECT_THAT(missing.error().fix, HasSubstr("put the training records back at /data/train.txt"));
  DamagedCopy old;
  ASSERT_TRUE(old.machine.disk.remove_all("/run/data.sum").ok());
  const auto unknown = old.resume();
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().fix, HasSubstr("if /data/train.txt is as it was when the run began"));
  EXPECT_THAT(unknown.error().fix, HasSubstr("rm -rf /run/cache; gossamer train --resume"));
  ASSERT_TRUE(old.machine.disk.remove_all("/run/cache").ok());
  ASSERT_TRUE(old.resume().ok());
  EXPECT_EQ(files_of(old.machine.disk, "/run/model"), old.model);
  EXPECT_TRUE(*old.machine.disk.exists("/run/data.sum"));
}

// Claim: a run does not go on with other records, not even with the same ones in another order, whether its
// copy is damaged or deleted. With its own records, put back as the error says, it ends as ever.
TEST(TrainRun, RefusesOtherData) {
  const std::string records = two_classes(40);
  const std::size_t header = records.find('\n') + 1;
  const std::size_t first = records.find('\n', header) + 1;
  const std::string moved =
      records.substr(0, header) + records.substr(first) + records.substr(header, first - header);
  for (const bool deleted : {false, true}) {
    SCOPED_TRACE(deleted);
    DamagedCopy run;
    host::Disk& disk = run.machine.disk;
    if (deleted) {
      ASSERT_TRUE(disk.remove_all("/run/cache").ok());
    }
    for (const std::string& other : {moved, two_classes(41)}) {
      write(disk, "/data/train.txt", other);
      const auto refused = run.resume();
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
      EXPECT_EQ(refused.error().where, "/data/train.txt");
      EXPECT_THAT(refused.error().fix, HasSubstr("rm -rf /run/cache; gossamer train --resume"));
      // What was made of it is not taken for the run's data later.
      EXPECT_EQ(run.resume().error().kind, ErrorKind::kUsage);
      ASSERT_TRUE(disk.remove_all("/run/cache").ok());
    }
    write(disk, "/data/train.txt", records);
    ASSERT_TRUE(run.resume().ok());
    EXPECT_EQ(files_of(disk, "/run/model"), run.model);
  }
}

// Claim: a damaged checksum is told, and the run goes on once it is removed.
TEST(TrainRun, TellsADamagedChecksum) {
  DamagedCopy run;
  write(run.machine.disk, "/run/cache/train.cache", run.cache);
  for (const std::string damage : {"", "0123456789abcdef", "0123456789abcdeg\n", "0123456789ABCDEF\n"}) {
    write(run.machine.disk, "/run/data.sum", damage);
    const auto refused = run.resume();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(refused.error().fix, HasSubstr("rm /run/data.sum, then: gossamer train --resume"));
  }
  ASSERT_TRUE(run.machine.disk.remove_all("/run/data.sum").ok());
  ASSERT_TRUE(run.resume().ok());
  EXPECT_EQ(files_of(run.machine.disk, "/run/model"), run.model);
}

// Claim: the checksum is that of the data, however often and by however many threads it is imported. It
// changes with a record, the order, a label and a word, also where no number of the records changes.
TEST(SamplesChecksum, TellsDataFromOtherData) {
  using data::RecordFormat;
  const auto checksum = [](RecordFormat format, const std::string& text, int threads = 1) {
    SimMachine machine;
    host::SimCompute compute({.workers = threads});
    const run::NodeHost host{.disk = machine.disk,
                             .clock = machine.clock,
                             .compute = compute,
                             .kernels = kernels::kernels_for(kernels::best_isa()),
                             .console = machine.console};
    sparse_engine::TrainConfig config = testing::small_run();
    config.data.format = format;
    config.word2vec.min_count = 1;
    for (const char* directory : {"/data", "/run/cache"})
      EXPECT_TRUE(machine.disk.make_directories(directory).ok());
    write(machine.disk, "/data/train", text);
    const std::string cached = format == RecordFormat::kText ? "train.words" : "train.cache";
    const auto done = import_records(host, {.sources = {{.path = "/data/train", .format = format}},
                                            .cache_path = "/run/cache/" + cached,
                                            .words = config.word2vec});
    EXPECT_TRUE(done.ok()) << done.error().message();
    const auto samples = open_samples(host, config, {.directory = "/run/cache"});
    EXPECT_TRUE(samples.ok() && *samples != nullptr);
    return (*samples)->checksum();
  };
  const std::vector<std::vector<std::string>> alike = {
      {R"({"text": "a b", "labels": ["x"]})", R"({"text": "a b c", "labels": ["y"]})"},
      {R"({"text": "a b c", "labels": ["y"]})", R"({"text": "a b", "labels": ["x"]})"},
      {R"({"text": "a b", "labels": ["z"]})", R"({"text": "a b c", "labels": ["y"]})"},
      {R"({"text": "a d", "labels": ["x"]})", R"({"text": "a d c", "labels": ["y"]})"}};
  std::set<std::uint64_t> all;
  for (const auto& lines : alike) {
    const std::string text = lines[0] + "\n" + lines[1] + "\n";
    all.insert(checksum(RecordFormat::kJsonlText, text));
    EXPECT_EQ(checksum(RecordFormat::kJsonlText, text, 3), checksum(RecordFormat::kJsonlText, text));
  }
  EXPECT_EQ(all.size(), alike.size());
  all.clear();
  for (const std::string words : {"a b c b\n", "b a c b\n", "a d c d\n", "a b c\nb a\n"})
    all.insert(checksum(RecordFormat::kText, words));
  EXPECT_EQ(all.size(), 4U);
}

}  // namespace
}  // namespace gossamer::commands
