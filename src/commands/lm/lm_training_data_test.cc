// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/lm/lm_import.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/lm_training.h"
#include "commands/lm/test_toy_stages.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/token_file_writer.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using testing::files_of;
using ::testing::HasSubstr;
using testing::put_text;
using testing::repeating_text;
using testing::train_lm_run;

// A run that is stopped after some steps.
void begin_a_run(SimMachine& machine) {
  put_text(machine.disk);
  std::uint64_t asked = 0;
  bool stopped = false;
  while (!stopped || !*machine.disk.exists("/run/data.sum")) {
    ASSERT_LT(++asked, 100U);
    ASSERT_TRUE(machine.disk.remove_all("/run").ok());
    const auto begun = train_lm_run(machine.host(), {.stop_after = asked});
    ASSERT_TRUE(begun.ok()) << begun.error().message();
    stopped = begun->stopped;
  }
}

Result<TrainResult> go_on(SimMachine& machine) {
  return train_lm_run(machine.host(), {.resume = run::Continue::kResume});
}

struct BadText {
  const char* name;
  std::string text;
  std::vector<std::string> words;
  ErrorKind kind;
  std::string where;
  std::string says;  // in the message
};

// Claim: a text that cannot be trained on is refused with its place and what to do, and no directory is left.
TEST(LmTrainingData, RefusesBadTexts) {
  const std::vector<BadText> all = {
      {"empty", "", {}, ErrorKind::kBadData, "/data/train.txt", "an empty file"},
      {"short", "abc", {}, ErrorKind::kBadData, "/data/train.txt", "model.context (at most 3)"},
      {"latin", "abcabcabcabc\ncaf\xE9 abcabc\n", {}, ErrorKind::kBadData, "/data/train.txt:2:4", "UTF-8"},
      {"zero", std::string("abcabcabc\0abc", 13), {}, ErrorKind::kBadData, "/data/train.txt:1:10", "zero"},
      {"none", "abc", {"data.train="}, ErrorKind::kUsage, "data.train", "add data.train=FILE"},
      {"absent", "abc", {"data.train=/data/absent"}, ErrorKind::kFailed, "/data/absent", "absent"},
      {"no tokens", "abc", {"data.train=/data/absent.tokens"}, ErrorKind::kFailed, "/data/absent.tokens", ""},
      {"test absent", repeating_text(20), {"data.test=/data/no"}, ErrorKind::kFailed, "/data/no", ""},
      {"contradiction",
       repeating_text(20),
       {"train.microbatch=9"},
       ErrorKind::kUsage,
       "train.microbatch",
       ""},
      {"stdin twice", "abc", {"data.train=-", "data.test=-"}, ErrorKind::kUsage, "data.test", "only once"}};
  for (const BadText& bad : all) {
    SimMachine machine;
    put_text(machine.disk, bad.text);
    const auto refused = train_lm_run(machine.host(), {.words = bad.words});
    ASSERT_FALSE(refused.ok()) << bad.name;
    EXPECT_EQ(refused.error().kind, bad.kind) << bad.name << ": " << refused.error().message();
    EXPECT_EQ(refused.error().where, bad.where) << bad.name << ": " << refused.error().message();
    EXPECT_THAT(refused.error().message(), HasSubstr(bad.says)) << bad.name;
    EXPECT_FALSE(*machine.disk.exists("/run")) << bad.name;
  }
}

// Claim: bad lines are left out as far as data.skip_bad says, and told; one more ends the run.
TEST(LmTrainingData, LeavesOutBadLines) {
  SimMachine machine;
  put_text(machine.disk);
  write(machine.disk, "/data/lines.jsonl",
        "{\"text\":\"" + std::string(60, 'a') + "\"}\nno JSON\n{\"text\":\"\"}\n");
  const auto refused = train_lm_run(machine.host(), {.words = {"data.train=/data/lines.jsonl"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "/data/lines.jsonl:2:2");
  const auto done =
      train_lm_run(machine.host(), {.words = {"data.train=/data/lines.jsonl", "data.skip_bad=1"}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(machine.said("1 empty document"));
  EXPECT_TRUE(machine.said("1 bad line"));
  EXPECT_TRUE(machine.said("/data/lines.jsonl:2:2"));
}

// Claim: a token file and a directory of `data import lm` give the model of their text, and lie where they
// are.
TEST(LmTrainingData, TakesTokenFilesAsTheyAre) {
  SimMachine plain;
  put_text(plain.disk);
  ASSERT_TRUE(train_lm_run(plain.host()).ok());
  const auto right = files_of(plain.disk, "/run/model");
  for (const char* word : {"data.train=/imported/train.tokens", "data.train=/imported"}) {
    SimMachine machine;
    put_text(machine.disk);
    const auto imported = import_lm(machine.host(), testing::open_toy_pieces,
                                    {.kind = "lm", .sources = {"/data/train.txt"}, .directory = "/imported"});
    ASSERT_TRUE(imported.ok()) << imported.error().message();
    const auto done = train_lm_run(machine.host(), {.words = {word}});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(files_of(machine.disk, "/run/model"), right) << word;
    EXPECT_FALSE(*machine.disk.exists("/run/data/train.tokens")) << word;
  }
}

// Claim: tokens of another tokenizer are refused.
TEST(LmTrainingData, RefusesTokensOfAnotherTokenizer) {
  SimMachine machine;
  put_text(machine.disk);
  auto writer = tokens::TokenFileWriter::create(machine.disk, "/data/other.tokens",
                                                {.vocabulary = 257, .tokenizer_digest = 5});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->add(std::vector<tokens::TokenId>(100, 7), 100).ok());
  ASSERT_TRUE((*writer)->finish().ok());
  const auto refused = train_lm_run(machine.host(), {.words = {"data.train=/data/other.tokens"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadData);
  EXPECT_THAT(refused.error().what, HasSubstr("another tokenizer"));
}

// Claim: a run goes on with the tokens that it has kept, without the user's text.
TEST(LmTrainingData, GoesOnWithoutTheText) {
  SimMachine machine;
  begin_a_run(machine);
  ASSERT_TRUE(machine.disk.remove_all("/data").ok());
  const auto done = go_on(machine);
  ASSERT_TRUE(done.ok()) << done.error().message();
}

// Claim: damaged tokens of a run are read again from the text, with a warning; another text in its place is
// refused, and a text that is gone is asked for.
TEST(LmTrainingData, ReadsDamagedTokensAgain) {
  SimMachine whole;
  put_text(whole.disk);
  ASSERT_TRUE(train_lm_run(whole.host()).ok());
  const auto right = files_of(whole.disk, "/run/model");
  enum class Place { kSame, kOther, kGone };
  for (const Place place : {Place::kSame, Place::kOther, Place::kGone}) {
    SimMachine machine;
    begin_a_run(machine);
    write(machine.disk, "/run/data/train.tokens", "no tokens");
    if (place == Place::kOther) write(machine.disk, "/data/train.txt", repeating_text(21));
    if (place == Place::kGone) {
      ASSERT_TRUE(machine.disk.remove_all("/data").ok());
    }
    const auto done = go_on(machine);
    if (place == Place::kSame) {
      ASSERT_TRUE(done.ok()) << done.error().message();
      EXPECT_TRUE(machine.said("warning: what the run kept of its text is damaged"));
      EXPECT_EQ(files_of(machine.disk, "/run/model"), right);
      continue;
    }
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
    EXPECT_THAT(done.error().fix, HasSubstr("back"));
    EXPECT_TRUE(*machine.disk.exists("/run/checkpoints"));
  }
}

// Claim: whole tokens of another text in the run's place count as damaged: they are never trained on.
TEST(LmTrainingData, NeverTrainsOnAnotherText) {
  SimMachine whole;
  put_text(whole.disk);
  ASSERT_TRUE(train_lm_run(whole.host()).ok());
  SimMachine machine;
  begin_a_run(machine);
  const tokens::ByteTokenizer tokenizer;
  write(machine.disk, "/data/other.txt", repeating_text(30));
  ASSERT_TRUE(import_text(machine.host(), tokenizer,
                          {.sources = {"/data/other.txt"}, .path = "/run/data/train.tokens"})
                  .ok());
  ASSERT_TRUE(go_on(machine).ok());
  EXPECT_EQ(files_of(machine.disk, "/run/model"), files_of(whole.disk, "/run/model"));
}

}  // namespace
}  // namespace gossamer::commands
