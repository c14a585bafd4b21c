// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a run, from its beginning through stops and losses to the model that is asked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "commands/engine/query_session.h"
#include "commands/lm/lm_import.h"
#include "commands/lm/lm_session.h"
#include "commands/lm/test_toy_stages.h"
#include "host/api/files.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;
using testing::open_toy_pieces;
namespace pieces = tokens::test_pieces;

void write_own_model(SimMachine& machine) {
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  write(machine.disk, "/data/own.model", pieces::model("good"));
}

// A run that is stopped behind a few steps.
void stop_run(SimMachine& machine, const std::vector<std::string>& words) {
  // A run that is asked to stop before its first step leaves nothing.
  for (std::uint64_t asked = 0; !*machine.disk.exists("/run/data.sum"); ++asked) {
    const auto done = testing::train_lm_run(machine.host(), {.words = words, .stop_after = asked});
    ASSERT_TRUE(done.ok()) << done.error().message();
    ASSERT_TRUE(done->stopped);
  }
}
void stop_with_pieces(SimMachine& machine) {
  testing::put_text(machine.disk, "good\n" + testing::repeating_text(60));
  stop_run(machine, {"data.tokenizer=sentencepiece"});
}

// Claim: where the tokenizer of a stopped run is gone, damaged, or another one that opens, the same one is
// made from the same text, and the run goes on. From another text it is not: then the error names the
// tokenizer, and nothing that the run has kept is written.
TEST(RunTokenizer, AStoppedRunGoesOnWithItsOwnAlone) {
  const std::string kept = "/run/data/tokenizer.model";
  for (const std::string& found : {std::string(), std::string("damaged"), pieces::model("lies")}) {
    // Texts of which the toy makes the same tokenizer, another one, and none.
    for (const char* first : {"good", "lies", "other"}) {
      const bool same_text = std::string_view(first) == "good";
      SimMachine machine;
      stop_with_pieces(machine);
      if (found.empty()) {
        ASSERT_TRUE(machine.disk.remove_all(kept).ok());
      } else {
        write(machine.disk, kept, found);
      }
      write(machine.disk, "/data/train.txt", fmt::format("{}\n{}", first, testing::repeating_text(60)));
      const auto before = testing::files_of(machine.disk, "/run/data");
      const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
      ASSERT_EQ(done.ok(), same_text) << (done.ok() ? "" : done.error().message());
      if (same_text) {
        EXPECT_EQ(*host::read_text(machine.disk, kept), pieces::model("good"));
        continue;
      }
      EXPECT_EQ(done.error().where, kept);
      EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
      EXPECT_THAT(done.error().fix, HasSubstr("put the file back"));
      EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
    }
  }
}

// Imports a text with pieces of words as /tokens.
void import_pieces(SimMachine& machine, const std::string& first) {
  ASSERT_TRUE(machine.disk.remove_all("/tokens").ok());
  testing::put_text(machine.disk, first + "\n" + testing::repeating_text(60));
  const auto imported = import_lm(
      machine.host(), open_toy_pieces,
      {.kind = "lm", .sources = {"/data/train.txt"}, .directory = "/tokens", .tokenizer = "sentencepiece"});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
}

// Claim: a stopped run on imported tokens whose folder has others by now keeps its own tokenizer, and the
// tokens of its test text. The error names the tokens, wherever the tokenizer came from.
TEST(RunTokenizer, OtherImportedTokensChangeNothing) {
  for (const char* word : {"bytes", "sentencepiece", "/data/own.model"}) {
    SimMachine machine;
    write_own_model(machine);
    import_pieces(machine, "good");
    stop_run(machine,
             {"data.train=/tokens", "data.test=/data/test.txt", fmt::format("data.tokenizer={}", word)});
    const auto before = testing::files_of(machine.disk, "/run/data");
    ASSERT_TRUE(before.contains("tokenizer.model") && before.contains("test.tokens"));
    import_pieces(machine, "lies");
    const auto other = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().where, "/tokens/train.tokens") << other.error().message();
    EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
    import_pieces(machine, "good");
    const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
  }
}

// Claim: a lost tokenizer is found beside the imported tokens that it has made.
TEST(RunTokenizer, ALostOneIsBesideItsTokens) {
  SimMachine machine;
  write_own_model(machine);
  import_pieces(machine, "good");
  stop_run(machine, {"data.train=/tokens", "data.tokenizer=/data/own.model"});
  const auto before = testing::files_of(machine.disk, "/run/data");
  ASSERT_TRUE(machine.disk.remove_all("/run/data/tokenizer.model").ok());
  ASSERT_TRUE(machine.disk.remove_all("/data/own.model").ok());
  const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
}

// Claim: tokens that are not the run's say nothing about its tokenizer: they are read again from the text.
TEST(RunTokenizer, ForeignTokensAreReadAgain) {
  for (const char* word : {"bytes", "sentencepiece"}) {
    SimMachine machine;
    write_own_model(machine);
    import_pieces(machine, "lies");
    const std::string foreign = *host::read_text(machine.disk, "/tokens/train.tokens");
    testing::put_text(machine.disk, "good\n" + testing::repeating_text(60));
    stop_run(machine, {fmt::format("data.tokenizer={}", word)});
    const auto before = testing::files_of(machine.disk, "/run/data");
    write(machine.disk, "/run/data/train.tokens", foreign);
    ASSERT_TRUE(machine.disk.remove_all("/run/data/tokenizer.model").ok());
    const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(done.ok()) << done.error().message();
    EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
  }
}

// Claim: the copy of a lost tokenizer beside the run's model is named where it is the right one.
TEST(RunTokenizer, ACopyOfALostOneIsNamed) {
  for (const bool right : {true, false}) {
    SimMachine machine;
    stop_with_pieces(machine);
    ASSERT_TRUE(machine.disk.remove_all("/run/data/tokenizer.model").ok());
    ASSERT_TRUE(machine.disk.make_directories("/run/model").ok());
    write(machine.disk, "/run/model/tokenizer.model", pieces::model(right ? "good" : "lies"));
    testing::put_text(machine.disk, "lies\n" + testing::repeating_text(60));
    const auto lost = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_FALSE(lost.ok());
    EXPECT_EQ(lost.error().where, "/run/data/tokenizer.model");
    const std::string fix = right ? "put back what is in /run/model/tokenizer.model" : "put the file back";
    EXPECT_THAT(lost.error().fix, HasSubstr(fix));
  }
}

// Claim: a damaged tokenizer is made again where the run's tokens are gone as well, and people are told.
TEST(RunTokenizer, ADamagedOneIsMadeAgain) {
  SimMachine machine;
  stop_with_pieces(machine);
  const auto before = testing::files_of(machine.disk, "/run/data");
  ASSERT_TRUE(machine.disk.remove_all("/run/data/train.tokens").ok());
  write(machine.disk, "/run/data/tokenizer.model", "damaged");
  const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(machine.said("the tokenizer is made again: /run/data/tokenizer.model"));
  EXPECT_EQ(testing::files_of(machine.disk, "/run/data"), before);
}

// Claim: a text that has changed is named where the run's tokens are gone as well, and a tokenizer of that
// text does not take the place of the run's. With the text of before the run goes on.
TEST(RunTokenizer, AnotherTextTakesNoTokenizersPlace) {
  SimMachine machine;
  stop_with_pieces(machine);
  const std::string text = *host::read_text(machine.disk, "/data/train.txt");
  ASSERT_TRUE(machine.disk.remove_all("/run/data").ok());
  write(machine.disk, "/data/train.txt", "good\n" + testing::repeating_text(70));
  const auto other = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().where, "/data/train.txt");
  EXPECT_FALSE(*machine.disk.exists("/run/data/tokenizer.model"));
  EXPECT_FALSE(*machine.disk.exists("/run/data/train.tokens"));
  write(machine.disk, "/data/train.txt", text);
  const auto done = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
  ASSERT_TRUE(done.ok()) << done.error().message();
}

void train_with_pieces(SimMachine& machine) {
  testing::put_text(machine.disk, "good\n" + testing::repeating_text(60));
  const auto done = testing::train_lm_run(
      machine.host(), {.words = {"data.tokenizer=sentencepiece", "data.test=/data/test.txt"}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(done->summary, HasSubstr("bits_per_byte"));
}

// Claim: a run with pieces of words trains and is measured, and its model is asked: the prompt comes back as
// text.
TEST(RunTokenizer, ARunWithPiecesOfWords) {
  SimMachine machine;
  train_with_pieces(machine);
  EXPECT_EQ(*host::read_text(machine.disk, "/run/model/tokenizer.model"), pieces::model("good"));
  auto session = open_lm_session(machine.host(), testing::toys(), {.directory = "/run"});
  ASSERT_TRUE(session.ok()) << session.error().message();
  EXPECT_THAT((*session)->describe("/run"), HasSubstr("sentencepiece"));
  const std::vector<Query> queries = {{.text = "ab ab", .place = "line"}};
  std::vector<std::string> answers;
  const auto done = (*session)->answer(queries, [&](std::string_view line) { answers.emplace_back(line); });
  ASSERT_TRUE(done.ok()) << done.error().message();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers.front(), HasSubstr("\"text\":\"ab ab"));
}

// Claim: where the tokenizer of a finished run's model is gone or damaged, an error says what writes the
// model again, and that does.
TEST(RunTokenizer, ADamagedOneIsWrittenAgain) {
  SimMachine machine;
  train_with_pieces(machine);
  const auto right = testing::files_of(machine.disk, "/run/model");
  const std::string path = "/run/model/tokenizer.model";
  for (const bool gone : {false, true}) {
    write(machine.disk, path, "gooD");
    if (gone) {
      ASSERT_TRUE(machine.disk.remove_all(path).ok());
    }
    const auto session = open_lm_session(machine.host(), testing::toys(), {.directory = "/run"});
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().where, path);
    EXPECT_THAT(session.error().fix, HasSubstr("write the model again: gossamer train --resume"));
    const auto mended = testing::train_lm_run(machine.host(), {.resume = run::Continue::kResume});
    ASSERT_TRUE(mended.ok()) << mended.error().message();
    EXPECT_EQ(testing::files_of(machine.disk, "/run/model"), right);
  }
}

}  // namespace
}  // namespace gossamer::commands
