// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/text_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "commands/lm/lm_import.h"
#include "commands/lm/lm_text.h"
#include "commands/lm/test_toy_stages.h"
#include "host/api/files.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/sentencepiece_tokenizer.h"
#include "run/engine_key.h"
#include "settings/toml.h"

namespace gossamer::commands {
namespace {

using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;
using testing::open_toy_pieces;
namespace pieces = tokens::test_pieces;

// A machine with a text that toys can be trained on, and one that they cannot.
void put_texts(SimMachine& machine) {
  ASSERT_TRUE(machine.disk.make_directories("/data").ok());
  write(machine.disk, "/data/train.txt", "good\nab ab\n");
  write(machine.disk, "/data/odd.txt", "odd\n");
  write(machine.disk, "/data/own.model", pieces::model("good"));
}

TokenizerWanted wanted(const std::string& word, const std::string& source = "/data/train.txt") {
  return {.word = word, .vocabulary = 300, .sources = {source}, .kept = "/run/data/tokenizer.model"};
}

// Claim: bytes need no module and keep no file.
TEST(TextTokenizer, BytesNeedNothing) {
  SimMachine machine;
  put_texts(machine);
  const auto made = tokenizer_of_text(
      machine.host(), {},
      {.word = "bytes", .sources = {"/data/train.txt"}, .kept = "/run/data/tokenizer.model"});
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ((*made)->name(), "bytes");
  EXPECT_FALSE(*machine.disk.exists("/run/data/tokenizer.model"));
}

// Makes the tokenizer that is wanted, and keeps it.
Result<std::unique_ptr<tokens::Tokenizer>> make_and_keep(SimMachine& machine, const TokenizerWanted& what) {
  auto made = tokenizer_of_text(machine.host(), open_toy_pieces, what);
  if (!made.ok()) return made;
  if (auto kept = keep_tokenizer(machine.disk, what.kept, **made); !kept.ok()) return kept.error();
  return made;
}

// Claim: one that is trained gets the lines of the text, says so, and is kept. What is kept is taken the next
// time, whatever the word and the text are.
TEST(TextTokenizer, IsTrainedOnceAndKept) {
  SimMachine machine;
  put_texts(machine);
  const auto made = make_and_keep(machine, wanted("sentencepiece"));
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(machine.said("training the tokenizer on 9 B of text"));
  EXPECT_EQ(pieces::trained().lines, (std::vector<std::string>{"good", "ab ab"}));
  EXPECT_EQ(pieces::trained().vocabulary, 298U);
  EXPECT_TRUE(machine.said("a tokenizer of "));
  EXPECT_EQ(*host::read_text(machine.disk, "/run/data/tokenizer.model"), pieces::model("good"));
  pieces::trained() = {};
  for (const char* word : {"sentencepiece", "bytes", "/data/absent.model"}) {
    const auto again = tokenizer_of_text(machine.host(), open_toy_pieces, wanted(word, ""));
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ((*again)->digest(), (*made)->digest());
  }
  EXPECT_TRUE(pieces::trained().lines.empty());
}

// Claim: a user's model is taken from its file, and kept. The file may go then.
TEST(TextTokenizer, IsTakenFromAFile) {
  SimMachine machine;
  put_texts(machine);
  TokenizerWanted own = wanted("/data/own.model");
  own.vocabulary.reset();
  const auto made = make_and_keep(machine, own);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(*host::read_text(machine.disk, "/run/data/tokenizer.model"), pieces::model("good"));
}

// Claim: the folder of imported tokens or of a model stands for the tokenizer in it. Another folder is
// refused.
TEST(TextTokenizer, IsTakenFromAFolder) {
  SimMachine machine;
  put_texts(machine);
  ASSERT_TRUE(machine.disk.make_directories("/theirs").ok());
  TokenizerWanted own = wanted("/theirs");
  own.vocabulary.reset();
  const auto refused = tokenizer_of_text(machine.host(), open_toy_pieces, own);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().got, HasSubstr("a folder without tokenizer.model"));
  write(machine.disk, "/theirs/tokenizer.model", pieces::model("good"));
  const auto made = tokenizer_of_text(machine.host(), open_toy_pieces, own);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ((*made)->model(), pieces::model("good"));
}

// Claim: what cannot be is refused with what to do, and keeps no file: a word that is none, a file that is no
// model, a text that cannot be trained on or be read twice, few tokens, a module that is missing.
TEST(TextTokenizer, RefusesWhatCannotBe) {
  SimMachine machine;
  put_texts(machine);
  const auto refused = [&](const TokenizerWanted& what, const OpenPieces& open = open_toy_pieces) {
    const auto made = tokenizer_of_text(machine.host(), open, what);
    EXPECT_FALSE(made.ok()) << what.word;
    EXPECT_FALSE(*machine.disk.exists("/run/data/tokenizer.model"));
    return made.ok() ? Error{} : made.error();
  };
  // The number of tokens is for one that is trained: it does nothing for the others.
  for (const char* word : {"bytes", "/data/own.model"}) {
    EXPECT_EQ(refused(wanted(word)).kind, ErrorKind::kUsage);
    EXPECT_EQ(refused(wanted(word)).where, "data.vocabulary");
  }
  const Error no_word = refused(wanted("words"));
  EXPECT_EQ(no_word.kind, ErrorKind::kUsage);
  EXPECT_EQ(no_word.where, "data.tokenizer");
  EXPECT_THAT(no_word.got, HasSubstr("'words'"));
  // An empty word is no folder, though a path of it would lead to the root.
  write(machine.disk, "/tokenizer.model", pieces::model("good"));
  TokenizerWanted none_named = wanted("");
  none_named.vocabulary.reset();
  EXPECT_EQ(refused(none_named).kind, ErrorKind::kUsage);
  TokenizerWanted text = wanted("/data/odd.txt");
  text.vocabulary.reset();
  EXPECT_THAT(refused(text).what, HasSubstr("no model"));
  const Error odd = refused(wanted("sentencepiece", "/data/odd.txt"));
  EXPECT_EQ(odd.got, "too few characters");
  EXPECT_EQ(odd.fix, "give bytes as data.tokenizer");
  EXPECT_EQ(refused(wanted("sentencepiece", "/data/absent.txt")).where, "/data/absent.txt");
  EXPECT_EQ(refused(wanted("sentencepiece", "-")).kind, ErrorKind::kUsage);
  TokenizerWanted few = wanted("sentencepiece");
  for (const std::uint32_t vocabulary : {tokens::kLeastVocabulary - 1, tokens::kMostVocabulary + 1}) {
    few.vocabulary = vocabulary;
    EXPECT_EQ(refused(few).where, "data.vocabulary");
  }
  const auto none = [](const run::NodeHost&) -> Result<const tokens::SentencePieceModule*> {
    return Error{.kind = ErrorKind::kRefused, .what = "no module", .fix = "make torch"};
  };
  EXPECT_EQ(refused(wanted("sentencepiece"), none).fix, "make torch");
}

// Claim: imported tokens have their tokenizer beside them, and a run on them keeps it. Its figures name it.
TEST(TextTokenizer, ImportedTokensKeepTheirs) {
  SimMachine machine;
  put_texts(machine);
  const auto imported = import_lm(machine.host(), open_toy_pieces,
                                  {.kind = "lm",
                                   .sources = {"/data/train.txt"},
                                   .directory = "/tokens",
                                   .tokenizer = "sentencepiece",
                                   .vocabulary = 300});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  const auto look = inspect_lm(machine.host(), open_toy_pieces, "/tokens");
  ASSERT_TRUE(look.ok() && *look);
  EXPECT_THAT((**look).json, HasSubstr("\"tokenizer\":\"sentencepiece\""));
  EXPECT_THAT((**look).json, HasSubstr("good\\nab ab"));
  TokenizerWanted theirs = wanted("bytes", "/tokens");
  EXPECT_EQ(tokenizer_of_text(machine.host(), open_toy_pieces, theirs).error().where, "data.vocabulary");
  theirs.vocabulary.reset();
  const auto made = make_and_keep(machine, theirs);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ((*made)->name(), "sentencepiece");
  EXPECT_TRUE(open_tokens(machine.host(), "/tokens/train.tokens", **made).ok());
  EXPECT_TRUE(*machine.disk.exists("/run/data/tokenizer.model"));
}

// Claim: tokens that were imported stay what they are, and it is told where a word asks for others.
TEST(TextTokenizer, ImportedTokensStayBytes) {
  SimMachine machine;
  put_texts(machine);
  const auto imported = import_lm(machine.host(), open_toy_pieces,
                                  {.kind = "lm", .sources = {"/data/train.txt"}, .directory = "/tokens"});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  TokenizerWanted theirs = wanted("sentencepiece", "/tokens");
  theirs.vocabulary.reset();
  const auto made = tokenizer_of_text(machine.host(), open_toy_pieces, theirs);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ((*made)->name(), "bytes");
  EXPECT_TRUE(machine.said("/tokens/train.tokens has tokens already, of bytes"));
}

// Claim: tokens of bytes are known by their file, whatever lies beside it. They need no module.
TEST(TextTokenizer, BytesBesideAnotherTokenizer) {
  SimMachine machine;
  put_texts(machine);
  ASSERT_TRUE(
      import_lm(machine.host(), {}, {.kind = "lm", .sources = {"/data/train.txt"}, .directory = "/tokens"})
          .ok());
  for (const std::string& beside : {pieces::model("good"), std::string("no model")}) {
    write(machine.disk, "/tokens/tokenizer.model", beside);
    const auto made = tokenizer_beside(machine.host(), {}, "/tokens/train.tokens");
    ASSERT_TRUE(made.ok()) << made.error().message();
    EXPECT_EQ((*made)->name(), "bytes");
  }
  // A run of bytes goes on where its own folder has one.
  ASSERT_TRUE(machine.disk.make_directories("/run/data").ok());
  write(machine.disk, "/run/data/tokenizer.model", "no model");
  const tokens::ByteTokenizer bytes;
  TokenizerWanted more = wanted("bytes", "/tokens");
  more.digest = bytes.digest();
  more.first = false;
  const auto again = tokenizer_of_text(machine.host(), {}, more);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ((*again)->name(), "bytes");
}

// Claim: a number of tokens beside tokens that are imported says something of texts alone, and people are
// told where the tokens are of more.
TEST(TextTokenizer, ANumberOfTokensIsForTexts) {
  SimMachine machine;
  put_texts(machine);
  ASSERT_TRUE(import_lm(machine.host(), open_toy_pieces,
                        {.kind = "lm",
                         .sources = {"/data/train.txt"},
                         .directory = "/tokens",
                         .tokenizer = "sentencepiece"})
                  .ok());
  TokenizerWanted theirs = wanted("sentencepiece", "/tokens");
  for (const std::uint32_t vocabulary : {8192U, 262U}) {
    theirs.vocabulary = vocabulary;
    ASSERT_TRUE(tokenizer_of_text(machine.host(), open_toy_pieces, theirs).ok());
    EXPECT_EQ(machine.said("data.vocabulary counts for texts alone"), vocabulary == 262) << vocabulary;
  }
}

// The keys of a run as words of a command line.
std::vector<std::string> words_of_run(SimMachine& machine) {
  auto table = settings::parse_toml(*host::read_text(machine.disk, "/run/run.toml"), "run.toml");
  EXPECT_TRUE(table.ok());
  EXPECT_EQ(run::take_engine(*table)->name, "lm");
  const auto read = settings::read_settings(pipeline::lm_keys().defaults().keys(), *table);
  EXPECT_TRUE(read.ok()) << read.error().message();
  std::vector<std::string> words;
  for (const settings::KeySetting& setting : *read)
    words.push_back(fmt::format("{}={}", setting.name, setting.text));
  return words;
}

// Claim: run.toml of a finished run trains once more in another folder, whatever its tokenizer is.
TEST(TextTokenizer, TheConfigOfARunIsARun) {
  for (const char* tokenizer : {"bytes", "sentencepiece", "/data/own.model"}) {
    for (const char* train : {"/data/train.txt", "/tokens"}) {
      SimMachine machine;
      put_texts(machine);
      testing::put_text(machine.disk, "good\n" + testing::repeating_text(60));
      ASSERT_TRUE(
          import_lm(
              machine.host(), open_toy_pieces,
              {.kind = "lm", .sources = {"/data/train.txt"}, .directory = "/tokens", .tokenizer = tokenizer})
              .ok());
      const std::vector<std::string> words = {fmt::format("data.tokenizer={}", tokenizer),
                                              fmt::format("data.train={}", train)};
      const auto first = testing::train_lm_run(machine.host(), {.words = words});
      ASSERT_TRUE(first.ok()) << first.error().message();
      const auto model = testing::files_of(machine.disk, "/run/model");
      const std::vector<std::string> run = words_of_run(machine);
      ASSERT_TRUE(machine.disk.remove_all("/run").ok());
      const auto second = testing::train_lm_run(machine.host(), {.words = run});
      ASSERT_TRUE(second.ok()) << second.error().message();
      EXPECT_EQ(testing::files_of(machine.disk, "/run/model"), model);
    }
  }
}

// Claim: a text is imported as one whatever its name is, also as FILE.tokens, and has its tokenizer trained.
TEST(TextTokenizer, ATextMayHaveTheNameOfTokens) {
  SimMachine machine;
  put_texts(machine);
  write(machine.disk, "/data/notes.tokens", "good\nab ab\n");
  const auto imported = import_lm(machine.host(), open_toy_pieces,
                                  {.kind = "lm",
                                   .sources = {"/data/notes.tokens"},
                                   .directory = "/tokens",
                                   .tokenizer = "sentencepiece",
                                   .vocabulary = 300});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  EXPECT_TRUE(*machine.disk.exists("/tokens/tokenizer.model"));
}

// Claim: a killed import with a tokenizer is begun again in the same directory. A user's tokenizer alone in a
// directory is no rest of an import.
TEST(TextTokenizer, AKilledImportIsBegunAgain) {
  for (const char* name : {"tokenizer.model", "tokenizer.model.tmp"}) {
    for (const bool killed : {false, true}) {
      SimMachine machine;
      put_texts(machine);
      ASSERT_TRUE(machine.disk.make_directories("/tokens").ok());
      write(machine.disk, fmt::format("/tokens/{}", name), "half");
      if (killed) write(machine.disk, "/tokens/.lock", "");
      const auto done = import_lm(machine.host(), open_toy_pieces,
                                  {.kind = "lm",
                                   .sources = {"/data/train.txt"},
                                   .directory = "/tokens",
                                   .tokenizer = "sentencepiece"});
      EXPECT_EQ(done.ok(), killed) << name << ": " << (done.ok() ? "" : done.error().message());
      const std::string now = killed ? "tokenizer.model" : name;
      EXPECT_EQ(*host::read_text(machine.disk, "/tokens/" + now), killed ? pieces::model("good") : "half");
    }
  }
}

}  // namespace
}  // namespace gossamer::commands
