// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_measuring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "commands/lm/lm_figures.h"
#include "commands/lm/lm_import.h"
#include "commands/lm/test_toy_stages.h"
#include "learn/tokens/byte_tokenizer.h"
#include "learn/tokens/token_file_writer.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using run::testing::write;
using ::testing::HasSubstr;
using ::testing::Not;

// A machine with a trained and measured model in /run.
class LmMeasuringTest : public ::testing::Test {
 protected:
  LmMeasuringTest() {
    testing::put_text(machine_.disk);
    const auto done = testing::train_lm_run(machine_.host(), {.words = {"data.test=/data/test.txt"}});
    EXPECT_TRUE(done.ok()) << done.error().message();
    summary_ = json::parse(done->summary);
  }
  Result<Report> measure(const std::string& data, std::uint64_t skip_bad = 0,
                         const std::string& scratch = "/state/7") {
    return measure_lm(
        machine_.host(), testing::toys(),
        {.model = {.directory = "/run"}, .data = data, .skip_bad = skip_bad, .scratch = scratch});
  }

  SimMachine machine_;
  json summary_;
};

// Claim: a text, its token file and the run itself have the same figures, to the last bit. The tokens of the
// text are gone at the end.
TEST_F(LmMeasuringTest, FiguresAreThoseOfTheRun) {
  ASSERT_TRUE(machine_.disk.make_directories("/state/5").ok());
  write(machine_.disk, "/state/5/measured.tokens", "");
  const auto text = measure("/data/test.txt");
  ASSERT_TRUE(text.ok()) << text.error().message();
  const json figures = json::parse(text->json);
  EXPECT_EQ(figures["metrics"], summary_["metrics"]);
  EXPECT_EQ(figures["tokens"], 17);
  EXPECT_EQ(figures["bytes"], 17);
  EXPECT_EQ(figures["documents"], 1);
  EXPECT_THAT(text->text, HasSubstr("perplexity"));
  EXPECT_FALSE(*machine_.disk.exists("/state/7"));
  EXPECT_FALSE(*machine_.disk.exists("/state/5")) << "left by a command that was killed";
  ASSERT_TRUE(import_lm(machine_.host(), testing::open_toy_pieces,
                        {.kind = "lm", .sources = {"/data/test.txt"}, .directory = "/imported"})
                  .ok());
  for (const char* data : {"/imported", "/imported/train.tokens", "/run/data/test.tokens"}) {
    const auto tokens = measure(data, 0, "");
    ASSERT_TRUE(tokens.ok()) << tokens.error().message();
    EXPECT_EQ(json::parse(tokens->json)["metrics"], summary_["metrics"]) << data;
  }
}

// Claim: a run in bf16 is measured as its model is asked, in the type of its files. So `eval` has its
// figures.
TEST(LmMeasuring, ARunInBf16HasTheFiguresOfItsModel) {
  SimMachine machine;
  testing::put_text(machine.disk);
  testing::ToysAsked asked;
  const LmModules modules = testing::toys_that_tell(asked);
  const auto done = testing::train_lm_run(
      machine.host(), {.words = {"data.test=/data/test.txt", "train.precision=bf16"}, .modules = modules});
  ASSERT_TRUE(done.ok()) << done.error().message();
  using enum pipeline::Precision;
  EXPECT_THAT(asked.precisions, ::testing::ElementsAre(kBf16, kF64)) << "the files of toys are double";
  const auto figures =
      measure_lm(machine.host(), modules,
                 {.model = {.directory = "/run"}, .data = "/data/test.txt", .scratch = "/state/9"});
  ASSERT_TRUE(figures.ok()) << figures.error().message();
  EXPECT_EQ(json::parse(figures->json)["metrics"], json::parse(done->summary)["metrics"]);
}

// Claim: bad lines are an error, or are left out and counted. What failed leaves no tokens either.
TEST_F(LmMeasuringTest, SkipsBadLinesAsItIsTold) {
  write(machine_.disk, "/data/lines.jsonl", "{\"text\":\"abcabc\"}\nbad\n");
  EXPECT_EQ(measure("/data/lines.jsonl").error().where, "/data/lines.jsonl:2:1");
  EXPECT_FALSE(*machine_.disk.exists("/state/7"));
  const auto skipped = measure("/data/lines.jsonl", 1);
  ASSERT_TRUE(skipped.ok()) << skipped.error().message();
  EXPECT_EQ(json::parse(skipped->json)["skipped"], 1);
  EXPECT_EQ(json::parse(skipped->json)["metrics"]["tokens"], 6);
}

// Claim: a token file that tells of less text than its first token stands for has a loss, and no bits per
// byte.
TEST_F(LmMeasuringTest, ATextOfNoBytesHasNoBitsPerByte) {
  for (const std::uint64_t bytes : {0, 1}) {
    auto writer = tokens::TokenFileWriter::create(machine_.disk, "/data/odd.tokens",
                                                  {.vocabulary = tokens::ByteTokenizer::kVocabulary,
                                                   .tokenizer_digest = tokens::ByteTokenizer().digest()});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->add(std::vector<tokens::TokenId>(20, 'a'), bytes).ok());
    ASSERT_TRUE((*writer)->finish().ok());
    const auto measured = measure("/data/odd.tokens");
    ASSERT_TRUE(measured.ok()) << measured.error().message();
    const json metrics = json::parse(measured->json)["metrics"];
    EXPECT_GT(metrics["loss"], 0);
    EXPECT_TRUE(metrics["bits_per_byte"].is_null()) << metrics;
    EXPECT_THAT(measured->text, Not(HasSubstr("bits per byte")));
  }
}

// Claim: an empty text, a missing one and a machine without a place for tokens are errors.
TEST_F(LmMeasuringTest, RefusesWhatCannotBeMeasured) {
  write(machine_.disk, "/data/empty.txt", "");
  EXPECT_EQ(measure("/data/empty.txt").error().kind, ErrorKind::kBadData);
  EXPECT_EQ(measure("/data/absent.txt").error().where, "/data/absent.txt");
  EXPECT_EQ(measure("/data/test.txt", 0, "").error().where, "HOME");
}

// Claim: figures that are infinite are null in JSON, which has no other word for them.
TEST(LmFigures, InfiniteFiguresAreNull) {
  const json metrics = json::parse(lm_metrics_json({.loss = 1e6, .tokens = 1, .bytes = 1}));
  EXPECT_TRUE(metrics["perplexity"].is_null());
  EXPECT_EQ(metrics["loss"], 1e6);
}

}  // namespace
}  // namespace gossamer::commands
