// SPDX-License-Identifier: Apache-2.0
#include "run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/api/files.h"
#include "host/sim/disk.h"

namespace gossamer::run {
namespace {

using settings::key;
using settings::KeySetting;
using settings::KeyTable;
using ::testing::HasSubstr;

// What an engine's configuration may look like.
struct Config {
  std::uint64_t batch = 256;
  std::optional<double> dropout = {};
  std::string train = {};
  std::string test = {};
};

const KeyTable<Config>& keys() {
  static const KeyTable<Config> table(
      {.listed_by = "gossamer train --keys"},
      {key<&Config::batch>("train.batch", {.min = 1, .max = 65536}, "records in a step"),
       key<&Config::dropout>("model.dropout", {.max = 0.95}, "share of hidden units"),
       key<&Config::train>("data.train", {.kept_in = "cache"}, "records"),
       key<&Config::test>("data.test", {.kept_in = ""}, "records")});
  return table;
}

KeySetting setting(std::string name, std::string text) {
  return {.name = std::move(name), .text = std::move(text)};
}

Result<RunDirectory> open(host::Disk& disk, Continue resume, const std::vector<KeySetting>& written = {},
                          const std::string& engine = "first") {
  settings::Values wanted = keys().defaults();
  EXPECT_TRUE(wanted.apply(written).ok());
  return RunDirectory::open(disk, {.directory = "runs/x",
                                   .resume = resume,
                                   .engine = {.name = engine, .unnamed = "first"},
                                   .config = wanted,
                                   .settings = written,
                                   .run_id = "ab12"});
}

// A missing and an empty directory take a new run, with or without --resume. run.toml holds the config.
TEST(RunDirectory, StartsInMissingOrEmpty) {
  for (const Continue resume : {Continue::kNo, Continue::kResume}) {
    for (const bool make : {false, true}) {
      host::SimDisk disk;
      if (make) {
        ASSERT_TRUE(disk.make_directories("runs/x").ok());
      }
      auto run = open(disk, resume, {setting("train.batch", "64")});
      ASSERT_TRUE(run.ok()) << run.error().message();
      EXPECT_TRUE(run->is_new());
      EXPECT_EQ(keys().config(run->config()).batch, 64U);
      EXPECT_FALSE(run->finished_summary().has_value());
      EXPECT_TRUE(*disk.exists("runs/x/run.toml"));
    }
  }
}

// Claim: a run keeps the threads of its last process, also when its config is written again. A run that keeps
// none, such as one of an older version, tells none.
TEST(RunDirectory, KeepsItsThreads) {
  host::SimDisk disk;
  OpenRun wanted{.directory = "runs/x",
                 .resume = Continue::kResume,
                 .engine = {.name = "first", .unnamed = "first"},
                 .config = keys().defaults(),
                 .settings = {},
                 .run_id = "ab12"};
  EXPECT_FALSE(threads_of_run(disk, "runs/x").has_value());
  ASSERT_TRUE(RunDirectory::open(disk, wanted).ok());
  EXPECT_FALSE(threads_of_run(disk, "runs/x").has_value());
  wanted.threads = 3;
  {
    auto run = RunDirectory::open(disk, wanted);
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_FALSE(run->threads_before().has_value());
    ASSERT_TRUE(run->write_config(keys().defaults()).ok());
  }
  EXPECT_EQ(threads_of_run(disk, "runs/x"), 3);
  wanted.threads = 5;
  const auto again = RunDirectory::open(disk, wanted);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->threads_before(), 3);
  EXPECT_EQ(again->run_id(), "ab12");
}

// Claim: a line of threads that was damaged, or written by hand, tells none instead of a wrong number.
TEST(RunDirectory, TellsNoThreadsOfADamagedLine) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("runs/x").ok());
  const auto told = [&](const std::string& text) {
    EXPECT_TRUE(host::replace_file(disk, RunPaths("runs/x").config(), text).ok());
    return threads_of_run(disk, "runs/x");
  };
  EXPECT_EQ(told("# run ab12\n# threads 12\n"), 12);
  EXPECT_EQ(told("# run ab12\n# threads 12\n[train]\nbatch = 4\n"), 12);
  for (const char* line :
       {"# threads 12", "# threads \n", "# threads 0\n", "# threads -3\n", "# threads 3x\n", "# threads 3 \n",
        "# threads  3\n", "# threads 99999999999\n", "#threads 3\n", "# workers 3\n", "\n# threads 3\n"}) {
    EXPECT_FALSE(told(std::string("# run ab12\n") + line).has_value()) << line;
  }
  EXPECT_FALSE(told("# run ab12").has_value());
  EXPECT_FALSE(told("# threads 3\n").has_value());
  EXPECT_FALSE(told("[train]\n# threads 3\n").has_value());
}

// A directory that holds anything is refused without --resume and stays as it is. With
// --resume only a run is accepted.
TEST(RunDirectory, RefusesWhatIsNotEmpty) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("runs/x").ok());
  ASSERT_TRUE(host::replace_file(disk, "runs/x/thesis.tex", std::string_view("years of work")).ok());
  for (const Continue resume : {Continue::kNo, Continue::kResume}) {
    auto run = open(disk, resume);
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(run.error().where, "runs/x");
  }
  EXPECT_EQ(*disk.list("runs/x"), std::vector<std::string>{"thesis.tex"});

  host::SimDisk other;
  ASSERT_TRUE(open(other, Continue::kNo).ok());
  auto again = open(other, Continue::kNo);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().fix, HasSubstr("--resume"));
}

// Claim: a run that has lost its run.toml is named as one, and stays as it is.
TEST(RunDirectory, NamesARunWithoutItsConfig) {
  host::SimDisk disk;
  ASSERT_TRUE(disk.make_directories("runs/x/checkpoints").ok());
  ASSERT_TRUE(host::replace_file(disk, "runs/x/events.jsonl", std::string_view("{}")).ok());
  for (const Continue resume : {Continue::kNo, Continue::kResume}) {
    const auto run = open(disk, resume);
    ASSERT_FALSE(run.ok());
    EXPECT_THAT(run.error().what, HasSubstr("this run has lost its run.toml"));
    EXPECT_THAT(run.error().fix, HasSubstr("restore it"));
  }
  EXPECT_EQ(*disk.list("runs/x"), (std::vector<std::string>{"checkpoints", "events.jsonl"}));
}

// A resumed run has the old run's config. A setting that agrees or says auto is fine. The
// error for another names the key.
TEST(RunDirectory, ResumeComparesKeys) {
  host::SimDisk disk;
  ASSERT_TRUE(
      open(disk, Continue::kNo, {setting("train.batch", "64"), setting("model.dropout", "0.25")}).ok());

  auto same = open(disk, Continue::kResume, {setting("train.batch", "64"), setting("model.dropout", "auto")});
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ(keys().config(same->config()).dropout, 0.25);
  EXPECT_FALSE(same->is_new());
  EXPECT_EQ(same->run_id(), "ab12");
  auto spelt = open(disk, Continue::kResume, {setting("model.dropout", "2.5e-1")});
  EXPECT_FALSE(spelt.ok()) << "the first one still holds the lock";
  EXPECT_EQ(spelt.error().kind, ErrorKind::kRefused);

  {
    const RunDirectory gone = std::move(*same);
  }
  EXPECT_TRUE(open(disk, Continue::kResume, {setting("model.dropout", "2.5e-1")}).ok());
  auto other = open(disk, Continue::kResume, {setting("train.batch", "128")});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(other.error().message(), HasSubstr("train.batch = 64"));
}

// Claim: a resumed run finds a file elsewhere, where its directory has no copy of it. One with a copy, and a
// finished run, refuse another path: nothing would be read there.
TEST(RunDirectory, ResumeMayFindFilesElsewhere) {
  host::SimDisk disk;
  const KeySetting train = setting("data.train", "../a/train.txt");
  const KeySetting test = setting("data.test", "../a/test.txt");
  ASSERT_TRUE(open(disk, Continue::kNo, {setting("data.train", "train.txt")}).ok());
  {
    const auto moved = open(disk, Continue::kResume, {train, test});
    ASSERT_TRUE(moved.ok()) << moved.error().message();
    EXPECT_EQ(keys().config(moved->config()).train, "../a/train.txt");
    EXPECT_EQ(keys().config(moved->config()).test, "../a/test.txt");
  }
  ASSERT_TRUE(disk.make_directories("runs/x/cache").ok());
  const auto kept = open(disk, Continue::kResume, {train});
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().what, "the run to resume has another data.train");
  EXPECT_TRUE(open(disk, Continue::kResume, {test}).ok());
  ASSERT_TRUE(host::replace_file(disk, "runs/x/summary.json", std::string_view("{}\n")).ok());
  const auto finished = open(disk, Continue::kResume, {test});
  ASSERT_FALSE(finished.ok());
  EXPECT_EQ(finished.error().what, "the run to resume has another data.test");
}

// run.toml names the engine, unless it is that of configs without the key. Its own config is read again.
TEST(RunDirectory, NamesItsEngine) {
  for (const std::string engine : {"first", "second"}) {
    host::SimDisk disk;
    ASSERT_TRUE(open(disk, Continue::kNo, {}, engine).ok());
    const std::string text = *host::read_text(disk, "runs/x/run.toml");
    EXPECT_EQ(text.starts_with("# run ab12\nengine = \"second\" "), engine == "second") << text;
    EXPECT_EQ(text.find("engine") != std::string::npos, engine == "second") << text;
    EXPECT_EQ(**engine_of_run(disk, "runs/x", "first"), engine);
    const auto again = open(disk, Continue::kResume, {setting("train.batch", "256")}, engine);
    EXPECT_TRUE(again.ok()) << again.error().message();
  }
  host::SimDisk empty;
  EXPECT_EQ(*engine_of_run(empty, "runs/x", "first"), std::nullopt);
}

// A run of another engine is refused before any of its keys is read, whichever of both is named in its file.
TEST(RunDirectory, RefusesARunOfAnotherEngine) {
  for (const std::string engine : {"first", "second"}) {
    host::SimDisk disk;
    ASSERT_TRUE(open(disk, Continue::kNo, {}, engine).ok());
    const std::string text = *host::read_text(disk, "runs/x/run.toml") + "strange = 3\n";
    ASSERT_TRUE(host::replace_file(disk, "runs/x/run.toml", std::string_view(text)).ok());
    const auto other = open(disk, Continue::kResume, {}, engine == "first" ? "second" : "first");
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(other.error().what, "the run in this directory is of engine '" + engine + "'");
    EXPECT_THAT(other.error().where, HasSubstr("runs/x/run.toml"));
  }
}

// A finished run gives its summary back, byte for byte.
TEST(RunDirectory, FinishedRunGivesItsSummary) {
  host::SimDisk disk;
  ASSERT_TRUE(open(disk, Continue::kNo).ok());
  ASSERT_TRUE(host::replace_file(disk, "runs/x/summary.json", std::string_view("{\"steps\":1}\n")).ok());
  auto run = open(disk, Continue::kResume);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->finished_summary(), "{\"steps\":1}\n");
}

// abandon() leaves a new directory as if the run had never been, and an old run alone.
TEST(RunDirectory, AbandonLeavesNothingOfANewRun) {
  host::SimDisk disk;
  {
    auto run = open(disk, Continue::kNo);
    ASSERT_TRUE(run.ok());
    ASSERT_TRUE(disk.make_directories(run->paths().cache()).ok());
    run->abandon();
  }
  EXPECT_FALSE(*disk.exists("runs/x"));
  ASSERT_TRUE(open(disk, Continue::kNo).ok());
  {
    auto run = open(disk, Continue::kResume);
    ASSERT_TRUE(run.ok());
    run->abandon();
  }
  EXPECT_TRUE(*disk.exists("runs/x/run.toml"));
}

// Claim: a run that has failed before its first step leaves nothing that it made, whether its directory was
// there before or not. The same command then works.
TEST(RunDirectory, AbandonedRunsBeginAgain) {
  for (const bool there : {false, true}) {
    host::SimDisk disk;
    if (there) {
      ASSERT_TRUE(disk.make_directories("runs/x").ok());
    }
    {
      auto run = open(disk, Continue::kNo);
      ASSERT_TRUE(run.ok());
      const RunPaths& paths = run->paths();
      for (const std::string& made : {paths.cache(), paths.data(), paths.checkpoints()})
        ASSERT_TRUE(disk.make_directories(made + "/inner").ok());
      for (const std::string& made : {paths.metrics(), paths.events(), paths.data_sum(),
                                      paths.data_sum() + ".tmp", paths.config() + ".tmp"})
        ASSERT_TRUE(host::replace_file(disk, made, std::string_view("some")).ok());
      run->abandon();
    }
    EXPECT_EQ(*disk.exists("runs/x"), there);
    if (there) {
      EXPECT_TRUE(disk.list("runs/x")->empty());
    }
    EXPECT_TRUE(open(disk, Continue::kNo).ok());
  }
}

// A process that is killed while it takes its traces away leaves a directory in which a run begins or goes
// on.
TEST(RunDirectory, GoesOnAfterADeathWhileItAbandons) {
  const auto abandon = [](host::SimDisk& disk, const host::SimDiskOptions& faults) {
    auto run = open(disk, Continue::kNo);
    ASSERT_TRUE(run.ok());
    for (const std::string& made : {run->paths().cache(), run->paths().checkpoints()})
      ASSERT_TRUE(disk.make_directories(made).ok());
    for (const std::string& made : {run->paths().metrics(), run->paths().events()})
      ASSERT_TRUE(host::replace_file(disk, made, std::string_view("some")).ok());
    disk.restart_count(faults);
    run->abandon();
  };
  host::SimDisk rehearsal;
  abandon(rehearsal, {});
  ASSERT_FALSE(*rehearsal.exists("runs/x"));
  for (std::uint64_t k = 0; k < rehearsal.operations(); ++k) {
    host::SimDisk disk;
    abandon(disk, {.crash_at_operation = k});
    disk.restart_count({});
    const auto again = open(disk, Continue::kResume);
    EXPECT_TRUE(again.ok()) << k << ": " << again.error().message();
  }
}

// After a crash at any operation while a run is opened, --resume works.
TEST(RunDirectory, ResumesAfterACrashAtAnyOperation) {
  host::SimDisk rehearsal;
  {
    ASSERT_TRUE(open(rehearsal, Continue::kNo).ok());
  }
  for (std::uint64_t k = 0; k <= rehearsal.operations(); ++k) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      host::SimDisk disk(host::SimDiskOptions{.seed = seed, .crash_at_operation = k});
      {
        static_cast<void>(open(disk, Continue::kNo).ok());
      }
      const std::unique_ptr<host::SimDisk> later = disk.after_crash();
      auto run = open(*later, Continue::kResume);
      EXPECT_TRUE(run.ok()) << "operation " << k << ", seed " << seed << ": " << run.error().message();
    }
  }
}

}  // namespace
}  // namespace gossamer::run
