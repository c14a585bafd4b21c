// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/prediction_service.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands/predict/prediction.h"
#include "run/test_machine.h"

namespace gossamer::commands {
namespace {

sparse_engine::Model diagonal_model() {
  sparse_engine::Model model;
  model.network = sparse::Network({.features = 4, .labels = 3, .hidden = 16}, sparse::Moments::kNone);
  for (std::size_t f = 0; f < 4; ++f) model.network.embedding.weights(f)[f] = 1;
  for (std::size_t l = 0; l < 3; ++l) model.network.output.weights(l)[l] = static_cast<float>(l + 1);
  model.label_count = {3, 2, 1};
  return model;
}

class Service : public ::testing::Test {
 protected:
  Service() {
    auto session = PredictSession::create(machine_.host(), diagonal_model(), {.top = 2});
    EXPECT_TRUE(session.ok());
    session_ = std::move(*session);
  }
  // What predict prints, each on its line.
  std::string predicted(const std::vector<std::string>& texts) {
    std::vector<Query> queries;
    for (const std::string& text : texts) queries.push_back({.text = text, .place = "here"});
    std::string lines;
    EXPECT_TRUE(
        session_->answer(queries, [&lines](std::string_view json) { lines += std::string(json) + "\n"; })
            .ok());
    return lines;
  }
  host::HttpReply answer(const host::HttpRequest& request) {
    return PredictionService(*session_).answer(std::span(&request, 1)).at(0);
  }

  run::testing::SimMachine machine_;
  std::unique_ptr<PredictSession> session_;
};

// Answers to one query, to an array and to lines have the bytes of predict.
TEST_F(Service, SameBytesAsPredict) {
  const std::string object = R"({"features":[[0,1.5],[2,0.1]]})";
  const std::string one = predicted({object});
  const std::string two = predicted({"1:2"});
  EXPECT_EQ(answer({.content_type = "application/json", .body = object}).body, one);
  EXPECT_EQ(answer({.content_type = "application/json", .body = "\n \"1:2\"\n"}).body, two);
  for (const char* charset : {"utf-8", "us-ascii"})
    EXPECT_EQ(answer({.content_type = "text/plain", .charset = charset, .body = "1:2"}).body, two);
  const auto trimmed = [](const std::string& line) { return line.substr(0, line.size() - 1); };
  EXPECT_EQ(answer({.content_type = "application/json", .body = "[" + object + ", \"1:2\"]"}).body,
            "[" + trimmed(one) + "," + trimmed(two) + "]\n");
  for (const char* type : {"application/x-ndjson", "text/plain"}) {
    EXPECT_EQ(answer({.content_type = type, .body = object + "\r\n\n1:2"}).body, one + predicted({""}) + two);
  }
  EXPECT_EQ(answer({.content_type = "application/json", .body = "[]"}).body, "[]\n");
}

// Requests of several clients are answered in one block, each with its own number of
// labels. A bad one is among them.
TEST_F(Service, SeveralRequestsAtOnce) {
  const std::vector<host::HttpRequest> requests = {
      {.content_type = "text/plain", .body = "0:1"},
      {.content_type = "text/plain", .body = "0:1\n0:x\n"},
      {.content_type = "text/plain", .parameters = {{"top", "1"}}, .body = "0:1"},
      {.content_type = "text/plain", .body = "2:1"}};
  const auto replies = PredictionService(*session_).answer(requests);
  ASSERT_EQ(replies.size(), 4U);
  EXPECT_EQ(replies[0].body, predicted({"0:1"}));
  EXPECT_EQ(replies[1].status, 400);
  EXPECT_NE(replies[1].body.find("line 2:1"), std::string::npos) << replies[1].body;
  EXPECT_EQ(nlohmann::json::parse(replies[2].body)["labels"].size(), 1U);
  EXPECT_EQ(replies[3].body, predicted({"2:1"}));
}

// A string that holds two JSON lines is refused. Otherwise later queries, also those of other clients, would
// get the answers to earlier ones.
TEST_F(Service, LinesInAString) {
  const std::string two = R"("{\"features\":[[0,1]]}\n{\"features\":[[2,1]]}")";
  const std::vector<host::HttpRequest> requests = {{.content_type = "application/json", .body = two},
                                                   {.content_type = "text/plain", .body = "1:1"}};
  const auto replies = PredictionService(*session_).answer(requests);
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].status, 400);
  EXPECT_EQ(replies[1].body, predicted({"1:1"}));
}

// A request that cannot be read gets a status and says where it is wrong.
TEST_F(Service, Refusals) {
  std::string deep(100'000, '[');
  const auto nested = [](std::size_t levels) {  // in one object
    return R"({"features":[[0,1]],"more":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') +
           "}";
  };
  EXPECT_EQ(answer({.content_type = "application/json", .body = nested(32)}).status, 200);
  std::string many = "[1";
  for (std::size_t i = 0; i < kQueriesPerRequest; ++i) many += ",\"0:1\"";
  const struct {
    host::HttpRequest request;
    int status;
    std::string part;
  } cases[] = {
      {{.content_type = "", .body = "0:1"}, 415, "Content-Type"},
      {{.content_type = "application/x-www-form-urlencoded", .body = "0:1"}, 415, "curl"},
      {{.content_type = "text/plain", .charset = "iso-8859-1", .body = "0:1"}, 415, "charset=iso-8859-1"},
      {{.content_type = "application/json", .body = ""}, 400, "well-formed"},
      {{.content_type = "application/json", .body = "{\"features\": }"}, 400, "column 14"},
      {{.content_type = "application/json", .body = deep}, 400, "body"},
      {{.content_type = "application/json", .body = "{\"text\":" + deep + std::string(100'000, ']') + "}"},
       400,
       "levels"},
      {{.content_type = "application/json", .body = nested(33)}, 400, "levels"},
      {{.content_type = "application/json", .body = "[\"0:1\", 7]"}, 400, "query 2"},
      {{.content_type = "application/json", .body = R"([{"features": [[0, 1]], "features": []}])"},
       400,
       "'features'"},
      {{.content_type = "application/json", .body = "{\"text\": \"a\"}"}, 400, "query"},
      {{.content_type = "text/plain", .body = many}, 400, "line 1"},
      {{.content_type = "text/plain", .parameters = {{"top", "0"}}, .body = "0:1"}, 400, "top=K"},
      {{.content_type = "text/plain", .parameters = {{"top", "3"}}, .repeated = "top", .body = "0:1"},
       400,
       "given twice"},
      {{.content_type = "text/plain", .parameters = {{"tpo", "3"}}, .body = "0:1"}, 400, "tpo"}};
  for (const auto& each : cases) {
    const host::HttpReply reply = answer(each.request);
    EXPECT_EQ(reply.status, each.status) << each.request.body.substr(0, 50);
    EXPECT_NE(reply.body.find(each.part), std::string::npos) << reply.body;
    EXPECT_TRUE(nlohmann::json::parse(reply.body).contains("error"));
  }
  std::string lines;
  for (std::size_t i = 0; i <= kQueriesPerRequest; ++i) lines += "0:1\n";
  const host::HttpReply reply = answer({.content_type = "text/plain", .body = lines});
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("1000"), std::string::npos);
}

// Answers every query with an error of one kind.
class FailingSession final : public QuerySession {
 public:
  explicit FailingSession(ErrorKind kind) : kind_(kind) {}
  Result<void> answer(std::span<const Query>, FunctionRef<void(std::string_view json)>) override {
    return Error{.kind = kind_};
  }
  void answer_each(std::span<const Query> queries, std::size_t,
                   FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) override {
    for (std::size_t i = 0; i < queries.size(); ++i) sink(i, Error{.kind = kind_, .what = "nobody answers"});
  }
  [[nodiscard]] std::size_t top() const override { return 1; }
  [[nodiscard]] std::string describe(const std::string&) const override { return "{}"; }

 private:
  const ErrorKind kind_;
};

// Claim: where the model cannot answer, the status says that the service is not there now, and not that the
// request was wrong.
TEST(PredictionServiceStatus, TellsFailuresFromMistakes) {
  const host::HttpRequest request{.content_type = "text/plain", .body = "0:1"};
  for (const auto& [kind, status] :
       {std::pair(ErrorKind::kFailed, 503), std::pair(ErrorKind::kBadData, 400)}) {
    FailingSession session(kind);
    const auto replies = PredictionService(session).answer(std::span(&request, 1));
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].status, status);
    EXPECT_NE(replies[0].body.find("nobody answers"), std::string::npos);
  }
}

// A small request cannot ask for a reply of any size. Queries times labels have a bound,
// and the bound itself is allowed.
TEST_F(Service, LabelsOfAReply) {
  constexpr std::size_t kQueries = kLabelsPerRequest / kMostLabels;
  std::string lines;
  for (std::size_t i = 0; i < kQueries; ++i) lines += "0:1\n";
  const auto status = [&](const std::string& body) {
    return answer({.content_type = "text/plain",
                   .parameters = {{"top", std::to_string(kMostLabels)}},
                   .body = body})
        .status;
  };
  EXPECT_EQ(status(lines), 200);
  EXPECT_EQ(status(lines + "0:1"), 400);
}

// The description says what is served.
TEST_F(Service, Description) {
  const auto json = nlohmann::json::parse(session_->describe("runs/a"));
  EXPECT_EQ(json["model"], "runs/a");
  EXPECT_EQ(json["features"], 4);
  EXPECT_EQ(json["labels"], 3);
  EXPECT_EQ(json["top"], 2);
  EXPECT_EQ(json["queries"], "numbered features");
}

}  // namespace
}  // namespace gossamer::commands
