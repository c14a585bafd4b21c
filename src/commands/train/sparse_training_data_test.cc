// SPDX-License-Identifier: Apache-2.0
//
// What runs make of their data. Runs whose data, or their copy of it, is damaged, gone or changed when they
// go on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/records/record_import.h"
#include "commands/run/train_run.h"
#include "commands/train/samples.h"
#include "commands/train/sparse_training.h"
#include "commands/train/test_small_run.h"
#include "host/api/files.h"
#include "host/sim/compute.h"
#include "kernels/isa.h"
#include "learn/data/cached_dataset.h"
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

// Claim: a run makes its records of sessions as sessions.last and sessions.decay say. So the items before the
// last one have the values 1, 1/2 and no more, scaled to length 1.
TEST(TrainRun, MakesRecordsOfSessionsAsConfigured) {
  SimMachine machine;
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  std::string text;
  for (int i = 0; i < 20; ++i) text += "deer owl fox\tmeat\n";
  write(machine.disk, "/data/train.txt", text);
  sparse_engine::TrainConfig config = testing::small_run();
  config.data.test.clear();
  config.data.format = data::RecordFormat::kSessions;
  config.sessions = {.last = 2, .decay = 0.5};
  const auto goes_on = [] { return false; };
  const auto done = run_training(machine.host(), {.directory = "/run",
                                                  .resume = run::Continue::kNo,
                                                  .config = config,
                                                  .settings = {},
                                                  .stop_requested = goes_on});
  ASSERT_TRUE(done.ok()) << done.error().message();
  const auto dataset = data::CachedDataset::open(machine.disk, "/run/cache/train.cache", machine.compute);
  ASSERT_TRUE(dataset.ok());
  const data::SparseRow row = (*dataset)->record(RecordIndex(0)).features;
  ASSERT_EQ(row.index.size(), 2U);
  std::map<std::string, float> values;
  for (std::size_t i = 0; i < 2; ++i)
    values[std::string((*dataset)->feature_name(row.index[i]))] = row.value[i];
  const float length = std::sqrt(1 + 0.25F);
  EXPECT_FLOAT_EQ(values["fox"], 1 / length);
  EXPECT_FLOAT_EQ(values["owl"], 0.5F / length);
}

// Claim: data.skip_bad is of the test set too, before the training and when the model is measured.
TEST(TrainRun, SkipsBadTestLines) {
  for (const std::uint64_t skip_bad : {0U, 1U}) {
    SimMachine machine;
    ASSERT_TRUE(machine.disk.make_directories("/data").ok());
    write(machine.disk, "/data/train.txt", two_classes(40));
    write(machine.disk, "/data/test.txt", "0 1:1\n0 x\n1 4:1\n");
    sparse_engine::TrainConfig config = testing::small_run();
    config.data.skip_bad = skip_bad;
    const auto goes_on = [] { return false; };
    const auto done = run_training(machine.host(), {.directory = "/run",
                                                    .resume = run::Continue::kNo,
                                                    .config = config,
                                                    .settings = {},
                                                    .stop_requested = goes_on});
    ASSERT_EQ(done.ok(), skip_bad == 1);
    if (!done.ok()) continue;
    EXPECT_THAT(done->summary, HasSubstr("\"P@1\""));
  }
}

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
      EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
      EXPECT_EQ(refused.error().where, "/data/train.txt");
      // What was made of it is not taken for the run's data later.
      EXPECT_EQ(run.resume().error().where, "/data/train.txt");
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
    EXPECT_THAT(refused.error().fix, HasSubstr("rm /run/data.sum, and resume"));
  }
  ASSERT_TRUE(run.machine.disk.remove_all("/run/data.sum").ok());
  ASSERT_TRUE(run.resume().ok());
  EXPECT_EQ(files_of(run.machine.disk, "/run/model"), run.model);
}

// A run of texts, or of the words of a text.
struct TextRun {
  sparse_engine::TrainConfig config = testing::small_run();

  explicit TextRun(data::RecordFormat format) {
    config.data = {.train = "/data/train", .test = "", .format = format};
    config.word2vec.min_count = 1;
    config.predict.instances = format != data::RecordFormat::kText;
    config.checkpoint = {.every_steps = 2, .every_minutes = 0, .keep = 3};
  }
  void put_data(host::Disk& disk) const {
    ASSERT_TRUE(disk.make_directories("/data").ok());
    std::string text;
    for (int i = 0; i < 40; ++i) {
      const std::string words = i % 2 == 0 ? "the cat purrs " : "the dog barks ";
      text += *config.data.format == data::RecordFormat::kText
                  ? words + std::to_string(i % 3) + "\n"
                  : fmt::format("{{\"text\": \"{}{}\", \"labels\": [\"{}\"]}}\n", words, i % 3, i % 2);
    }
    write(disk, "/data/train", text);
    ASSERT_TRUE(disk.sync_directory("/data").ok());
    ASSERT_TRUE(disk.sync_directory("/").ok());
  }
  [[nodiscard]] Result<TrainResult> train(const run::NodeHost& host) const {
    const auto goes_on = [] { return false; };
    return run_training(host, {.directory = "/run",
                               .resume = run::Continue::kResume,
                               .config = config,
                               .settings = {},
                               .stop_requested = goes_on});
  }
};

// Claim: a run of texts that goes on with another vocabulary than it began with has it read again, whatever
// of it was changed, and ends with the same model. Where its text is gone it is refused.
TEST(TrainRun, OfTextKeepsItsVocabulary) {
  const TextRun run(data::RecordFormat::kJsonlText);
  SimMachine machine;
  host::Disk& disk = machine.disk;
  run.put_data(disk);
  ASSERT_TRUE(run.train(machine.host()).ok());
  const auto model = files_of(disk, "/run/model");
  const auto good = nlohmann::json::parse(*host::read_text(disk, "/run/cache/vocabulary.json"));
  const auto go_on_with = [&](const char* place, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(place)] = value;
    write(disk, "/run/cache/vocabulary.json", json.dump());
    EXPECT_TRUE(disk.remove_all("/run/summary.json").ok());
    return run.train(machine.host());
  };
  for (const auto& [place, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"/documents", 41},
           {"/options/stems", false},
           {"/options/subword_min", 1},
           {"/options/subword_max", 3},
           {"/options/subword_max", -1},
           {"/options/min_document_frequency", 9},
           {"/options/max_features", 0},
           {"/options/max_features", 99},
           {"/options/stem_weight", 0.5},
           {"/options/subword_weight", 0.5},
       }) {
    SCOPED_TRACE(place);
    machine.console.text.clear();
    const auto done = go_on_with(place, value);
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_TRUE(machine.said("is damaged, and /data/train is read again")) << machine.console.text;
    EXPECT_EQ(files_of(disk, "/run/model"), model);
  }
  ASSERT_TRUE(disk.remove_all("/data/train").ok());
  const auto refused = go_on_with("/documents", 41);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
}

// Claim: a run of texts goes on with the checksum of an earlier build, which left options and documents out,
// and keeps the one of today from then on.
TEST(TrainRun, OfTextGoesOnFromAnEarlierBuild) {
  const TextRun run(data::RecordFormat::kJsonlText);
  SimMachine machine;
  run.put_data(machine.disk);
  ASSERT_TRUE(run.train(machine.host()).ok());
  const std::string sum = *host::read_text(machine.disk, "/run/data.sum");
  const auto samples = open_samples(machine.host(), run.config, {.directory = "/run/cache"});
  ASSERT_TRUE(samples.ok() && *samples != nullptr);
  const std::string former = fmt::format("{:016x}\n", (*samples)->former_checksum());
  ASSERT_NE(former, sum);
  write(machine.disk, "/run/data.sum", former);
  ASSERT_TRUE(machine.disk.remove_all("/run/summary.json").ok());
  machine.console.text.clear();
  ASSERT_TRUE(run.train(machine.host()).ok());
  EXPECT_FALSE(machine.said("read again")) << machine.console.text;
  EXPECT_EQ(*host::read_text(machine.disk, "/run/data.sum"), sum);
}

// Claim: after a crash at any disk operation, a run of texts or words goes on to the same model. The same
// holds for a crash while a damaged copy of its data is read again, whichever file of it is damaged or gone.
TEST(TrainRun, OfTextDiesAtEveryDiskOperationAndResumes) {
  for (const data::RecordFormat format : {data::RecordFormat::kJsonlText, data::RecordFormat::kText}) {
    const TextRun run(format);
    SimMachine whole;
    run.put_data(whole.disk);
    whole.disk.restart_count({});
    ASSERT_TRUE(run.train(whole.host()).ok()) << run.train(whole.host()).error().message();
    const std::uint64_t operations = whole.disk.operations();
    const auto model = files_of(whole.disk, "/run/model");
    const std::string sum = *host::read_text(whole.disk, "/run/data.sum");
    std::vector<std::string> damages = {""};
    for (const auto& [name, bytes] : files_of(whole.disk, "/run/cache"))
      damages.push_back("/run/cache/" + name);
    ASSERT_EQ(damages.size(), 3U);
    for (const std::string& damaged : damages) {
      for (const bool gone : {true, false}) {
        for (std::uint64_t k = 0; k < operations; ++k) {
          SCOPED_TRACE(fmt::format("{} {} {}", damaged, gone, k));
          SimMachine machine;
          run.put_data(machine.disk);
          if (!damaged.empty()) {
            ASSERT_TRUE(run.train(machine.host()).ok());
            ASSERT_TRUE(machine.disk.remove_all("/run/summary.json").ok());
            ASSERT_TRUE(machine.disk.remove_all(damaged).ok());
            if (!gone) write(machine.disk, damaged, "");
          }
          machine.disk.restart_count({.seed = k + 1, .crash_at_operation = k});
          static_cast<void>(run.train(machine.host()).ok());
          if (machine.disk.operations() < k) break;
          const auto left = machine.disk.after_crash();
          const auto done = run.train(machine.host_with(*left));
          ASSERT_TRUE(done.ok()) << done.error().message();
          ASSERT_EQ(files_of(*left, "/run/model"), model);
          ASSERT_EQ(*host::read_text(*left, "/run/data.sum"), sum);
        }
        if (damaged.empty()) break;
      }
    }
  }
}

// The checksum of a file's data, imported by some threads.
std::uint64_t checksum(data::RecordFormat format, const std::string& text, int threads = 1) {
  using data::RecordFormat;
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
}

// Claim: the checksum changes with a record, the order, a label and a word, also where no number of the
// records changes.
TEST(SamplesChecksum, TellsDataFromOtherData) {
  using data::RecordFormat;
  const std::vector<std::vector<std::string>> alike = {
      {R"({"text": "a b", "labels": ["x"]})", R"({"text": "a b c", "labels": ["y"]})"},
      {R"({"text": "a b c", "labels": ["y"]})", R"({"text": "a b", "labels": ["x"]})"},
      {R"({"text": "a b", "labels": ["z"]})", R"({"text": "a b c", "labels": ["y"]})"},
      {R"({"text": "a d", "labels": ["x"]})", R"({"text": "a d c", "labels": ["y"]})"}};
  std::set<std::uint64_t> all;
  for (const auto& lines : alike) {
    const std::string text = lines[0] + "\n" + lines[1] + "\n";
    all.insert(checksum(RecordFormat::kJsonlText, text));
  }
  EXPECT_EQ(all.size(), alike.size());
  all.clear();
  for (const std::string words : {"a b c b\n", "b a c b\n", "a d c d\n", "a b c\nb a\n"})
    all.insert(checksum(RecordFormat::kText, words));
  EXPECT_EQ(all.size(), 4U);
}

// Claim: the number of threads that read a file, piece by piece, does not change the checksum.
TEST(SamplesChecksum, IsThatOfAnyNumberOfThreads) {
  using data::RecordFormat;
  std::string texts;
  std::string sessions;
  while (texts.size() < 3U << 20) {
    const std::size_t i = texts.size();
    texts += fmt::format("{{\"text\": \"a{} b{} c{}\", \"labels\": [\"l{}\"]}}\n", i % 7, i % 101, i % 1009,
                         i % 13);
    sessions += fmt::format("a{} b{} c{}\n", i % 7, i % 101, i % 1009);
  }
  for (const auto& [format, text] :
       {std::pair(RecordFormat::kJsonlText, &texts), std::pair(RecordFormat::kSessions, &sessions),
        std::pair(RecordFormat::kText, &sessions)})
    EXPECT_EQ(checksum(format, *text, 1), checksum(format, *text, 3)) << static_cast<int>(format);
}

}  // namespace
}  // namespace gossamer::commands
