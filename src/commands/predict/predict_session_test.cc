// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/predict/prediction.h"
#include "engines/sparse/model/test_random_model.h"

namespace gossamer::commands {
namespace {

using sparse_engine::testing::random_model;

// Scores labels by what the value of a query is.
class ScoresByValue final : public sparse_engine::Predictor {
 public:
  Result<void> predict(const data::SparseRows& queries, std::size_t top_k,
                       sparse_engine::PredictionBlock& out) override {
    out.top_k = top_k;
    out.count.assign(queries.rows(), 2);
    out.entries.assign(queries.rows() * top_k, {});
    out.probability.assign(out.entries.size(), 0.25F);
    for (std::size_t q = 0; q < queries.rows(); ++q) {
      out.entries[q * top_k] = {.id = 4, .score = 1};
      out.entries[q * top_k + 1] = {.id = 2, .score = 1 / queries.row(q).value[0]};
    }
    return {};
  }
};

// Claim: a query without a finite score gets an error with its place, and never a probability. Those before
// it are answered, and all others of a request.
TEST(PredictSession, NoFiniteScoreIsAnError) {
  const auto session = PredictSession::create(
      random_model({.features = 30, .labels = 12, .rows = 0, .feature_names = true}), 2, std::nullopt,
      [](const sparse_engine::Model&) {
        return std::unique_ptr<sparse_engine::Predictor>(std::make_unique<ScoresByValue>());
      });
  const std::vector<Query> queries = {{.text = R"({"features": {"feature 1": 2}})", .place = "stdin:1"},
                                      {.text = R"({"features": {"feature 1": -0.0}})", .place = "stdin:2"},
                                      {.text = R"({"features": {"feature 2": 4}})", .place = "stdin:3"}};
  std::vector<std::string> lines;
  const auto done = session->answer(queries, [&lines](std::string_view line) { lines.emplace_back(line); });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["labels"][1]["score"], 0.5);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::kBadData);
  EXPECT_EQ(done.error().where, "stdin:2");
  EXPECT_EQ(done.error().got, "a score of -inf for label 2");
  std::string outcomes;
  session->answer_each(queries, 2, [&outcomes](std::size_t query, const Result<std::string>& answer) {
    outcomes += fmt::format("{} {} ", query, answer.ok() ? "answered" : answer.error().where);
  });
  EXPECT_EQ(outcomes, "0 answered 1 stdin:2 2 answered ");
}

}  // namespace
}  // namespace gossamer::commands
