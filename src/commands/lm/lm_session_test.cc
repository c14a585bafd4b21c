// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/lm_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "commands/lm/test_toy_stages.h"

namespace gossamer::commands {
namespace {

using nlohmann::json;
using run::testing::SimMachine;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A machine with a trained model in /run.
class LmSessionTest : public ::testing::Test {
 protected:
  LmSessionTest() {
    testing::put_text(machine_.disk);
    const auto done = testing::train_lm_run(machine_.host(), {.words = {"train.steps=60", "train.lr=0.05"}});
    EXPECT_TRUE(done.ok()) << done.error().message();
  }

  std::unique_ptr<QuerySession> open(const TextWanted& wanted = {}) {
    auto session = open_lm_session(host_, testing::toys(), {.directory = "/run", .text = wanted});
    EXPECT_TRUE(session.ok()) << session.error().message();
    return *std::move(session);
  }
  // The answers to these lines, with an error as its message.
  static std::vector<std::string> ask(QuerySession& session, const std::vector<std::string>& lines) {
    std::vector<Query> queries;
    for (const std::string& line : lines) queries.push_back({.text = line, .place = "line"});
    std::vector<std::string> answers;
    const auto done = session.answer(queries, [&](std::string_view line) { answers.emplace_back(line); });
    if (!done.ok()) answers.push_back(done.error().message());
    return answers;
  }

  SimMachine machine_;
  run::NodeHost host_ = machine_.host();
};

// Claim: the text begins with the prompt and goes on by as many tokens as the answer says, here bytes.
TEST_F(LmSessionTest, GoesOnWithThePrompt) {
  const auto session = open({.tokens = 12, .temperature = 0});
  const auto answers = ask(*session, {"abc", ""});
  ASSERT_EQ(answers.size(), 2U);
  const json first = json::parse(answers[0]);
  EXPECT_THAT(first["text"].get<std::string>(), StartsWith("abc"));
  EXPECT_EQ(first["text"].get<std::string>().size(), 3 + first["tokens"].get<std::size_t>());
  EXPECT_LE(first["tokens"], 12);
  EXPECT_GT(first["tokens"], 0);
  EXPECT_EQ(first.size(), 2U);
  EXPECT_TRUE(json::parse(answers[1]).contains("text"));
}

// Claim: equal seeds give equal texts, whatever was asked before; another seed gives another text.
TEST_F(LmSessionTest, ASeedNamesATextOfItsOwn) {
  const auto session = open({.tokens = 40, .temperature = 3, .seed = 5});
  const auto answers =
      ask(*session, {"abc", "abc", R"({"text": "abc", "seed": 5})", R"({"text": "abc", "seed": 6})"});
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_NE(answers[0], answers[3]);
  EXPECT_EQ(ask(*open({.tokens = 40, .temperature = 3, .seed = 5}), {"abc"})[0], answers[0]);
}

// Claim: a query's own keys go before flags: top_k = 1 takes the best token, as temperature 0 does.
TEST_F(LmSessionTest, KeysOfAQueryGoBeforeFlags) {
  const auto session = open({.tokens = 9, .temperature = 3, .seed = 5});
  const auto answers = ask(*session, {R"({"text": "ab", "temperature": 0})", R"({"text": "ab", "top_k": 1})",
                                      R"({"text": "ab", "top_k": 1, "tokens": 2})"});
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_LE(json::parse(answers[2])["tokens"], 2);
}

// Claim: keys that change nothing are named in the answer and counted for the command.
TEST_F(LmSessionTest, NamesKeysThatChangeNothing) {
  const auto session = open({.tokens = 2});
  const auto answers = ask(*session, {R"({"text": "a", "max_tokens": 5})", "a"});
  EXPECT_EQ(json::parse(answers[0])["ignored_keys"], json::array({"max_tokens"}));
  EXPECT_FALSE(json::parse(answers[1]).contains("ignored_keys"));
  EXPECT_EQ(session->ignored_keys().queries, 1U);
  EXPECT_EQ(session->ignored_keys().first, "max_tokens");
}

// Claim: a query that cannot be read ends the answers with its error; those before it are there. Asked each
// by itself, the others are answered.
TEST_F(LmSessionTest, ABadQueryEndsTheAnswers) {
  const auto session = open({.tokens = 2});
  const auto answers = ask(*session, {"a", "{", "b"});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_THAT(answers[1], HasSubstr("line: cannot read the query"));
  const std::vector<Query> queries = {{.text = "{", .place = "1"}, {.text = "a", .place = "2"}};
  std::vector<bool> good(2);
  session->answer_each(queries, 1,
                       [&](std::size_t i, const Result<std::string>& one) { good[i] = one.ok(); });
  EXPECT_EQ(good, (std::vector<bool>{false, true}));
}

// Claim: bytes that are no UTF-8 never leave the program: an answer is valid JSON for any seed.
TEST_F(LmSessionTest, AnswersAreUtf8) {
  const auto session = open({.tokens = 50, .temperature = 1000});
  for (int seed = 0; seed < 20; ++seed) {
    const auto answer =
        ask(*session, {"{\"text\": \"caf\xC3\xA9\", \"seed\": " + std::to_string(seed) + "}"})[0];
    EXPECT_TRUE(json::accept(answer)) << answer;
    EXPECT_THAT(json::parse(answer)["text"].get<std::string>(), StartsWith("caf\xC3\xA9"));
  }
}

// Claim: a run without a model, a damaged model and a missing module are errors that say what to do.
TEST_F(LmSessionTest, SaysWhyAModelCannotBeAsked) {
  const auto opened = [&](const std::string& directory, const LmModules& modules) {
    auto session = open_lm_session(host_, modules, {.directory = directory});
    return session.ok() ? Error{} : session.error();
  };
  EXPECT_THAT(opened("/data", testing::toys()).what, HasSubstr("no model"));
  EXPECT_EQ(opened("/run", {.stages = testing::open_nothing, .pieces = {}}).fix, "make torch");
  for (const auto& [name, bytes] : testing::files_of(machine_.disk, "/run/model")) {
    std::string damaged = bytes;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
    run::testing::write(machine_.disk, "/run/model/" + name, damaged);
    const Error error = opened("/run", testing::toys());
    EXPECT_EQ(error.kind, ErrorKind::kBadData) << name << ": " << error.message();
    EXPECT_THAT(error.fix, HasSubstr("write the model again: gossamer train --resume")) << name;
    run::testing::write(machine_.disk, "/run/model/" + name, bytes);
  }
}

}  // namespace
}  // namespace gossamer::commands
